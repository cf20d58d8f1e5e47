// SPDX-License-Identifier: Apache-2.0
// Diagnosis of a trial that has failed: what is run again, and the record that comes of it, with step, tensor, layer,
// ranks and region of the first divergence and the hypotheses that explain it best. Never part of a verdict.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "conformance/contract/batch_source.h"
#include "conformance/runner/probe.h"
#include "conformance/runner/trial.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// Reference probes are shared by the diagnoses that need the same.
using ProbeCache = std::map<std::string, std::shared_ptr<ReferenceProbe>>;

class Diagnosis {
 public:
  // Engines without `dump` cannot be diagnosed beyond what the lead says. The lead is copied. `model`: the trial's; a
  // run of it may have another one.
  Diagnosis(const Lead& lead, contract::ModelSpec model, bool engine_dumps, const contract::TokenSource& source,
            ProbeCache& probes);

  // Runs of the engine; none where nothing is run again. Those of the reference are in the cache.
  RunTask* candidate() { return candidate_.get(); }

  // When all of them are taken.
  reports::DivergenceRecord Finish() const;

 private:
  // Runs again without dumps may have failed as before: that is said of the case, not here.
  static constexpr const char* kNotAgain = "it did not diverge when it was run again with dumps";
  static constexpr const char* kOtherTrace =
      "the trace states other numbers than the engine's own dump, which is right";

  struct Found {
    contract::TensorKind kind = contract::TensorKind::kGradient;
    size_t tensor = 0;
  };

  struct Known {
    Evidence evidence;
    std::vector<size_t> forgotten;  // elements without a value, which say nothing
  };

  void PlanRuns(const contract::TokenSource& source, ProbeCache& probes);
  std::optional<Found> FindTensor(const Dump& dump) const;
  std::optional<TensorState> StateBefore(size_t tensor) const;
  TensorState InitialState(size_t tensor) const;
  Known EvidenceOf(const Found& found, const Dump& dump) const;
  void AddTruth(const Found& found, const Dump& dump, Evidence& evidence) const;
  // Names of quantities, besides those of the kinds of tensors.
  static constexpr const char* kDump = "dump";  // ranks do not agree, or a dump is not what the trace lists
  static constexpr const char* kLoss = "loss";
  static constexpr const char* kRate = "lr";
  static constexpr const char* kNorm = "gradient_norm";
  static bool IsNumber(const std::string& quantity);

  void AddNumber(const std::string& quantity, const Dump& dump, size_t group, Evidence& evidence) const;
  std::optional<Evidence> NumberEvidence(const std::string& quantity, const Dump& dump, size_t rank,
                                         size_t group) const;
  reports::DivergenceRecord FinishTensor(const Found& found, const Dump& dump, reports::DivergenceRecord record) const;
  reports::DivergenceRecord FinishDump(const Dump& dump, reports::DivergenceRecord record) const;
  reports::DivergenceRecord FinishNumber(const Dump& dump, reports::DivergenceRecord record) const;
  static void Rank(const Evidence& evidence, reports::DivergenceRecord& record);
  UpdateRecipe RecipeOf(const contract::ParameterSpec& parameter) const;
  double LargestNorm() const;
  double ClippedNorm(const Dump& dump) const;
  void AddClipping(Evidence& evidence) const;

  const contract::Case& spec() const { return lead_.run->spec; }
  int64_t step() const { return lead_.divergence.step; }

  Lead lead_;
  contract::ModelSpec model_;
  std::string undiagnosed_;
  std::unique_ptr<DumpTask> candidate_;
  size_t seen_run_ = 0;      // of candidate_: in which the divergence was seen
  size_t expected_run_ = 0;  // which it should equal, where there is one
  std::shared_ptr<ReferenceProbe> reference_;
};

}  // namespace plumbline::conformance
