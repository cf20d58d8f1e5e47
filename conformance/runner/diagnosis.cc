// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/diagnosis.h"

#include <algorithm>
#include <utility>

#include "conformance/diagnosis/ranking.h"
#include "conformance/diagnosis/region.h"
#include "conformance/runner/place_in_text.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

std::optional<TensorKind> KindOf(const std::string& quantity) {
  for (TensorKind kind : contract::kTensorKinds) {
    if (quantity == contract::Name(kind)) return kind;
  }
  return std::nullopt;
}

// The run as it is run again: up to the step.
TaskRun UpTo(TaskRun run, int64_t step, const std::string& suffix) {
  run.spec.id += suffix;
  run.spec.steps = std::min(run.spec.steps, step + 1 - run.spec.first_step);
  run.spec.save_steps.clear();
  run.resumes.reset();
  return run;
}

}  // namespace

Diagnosis::Diagnosis(const Lead& lead, contract::ModelSpec model, bool engine_dumps,
                     const contract::TokenSource& source, ProbeCache& probes)
    : lead_(lead), model_(lead.run ? lead.run->spec.model : std::move(model)) {
  if (lead_.divergence.quantity == "engine") {
    undiagnosed_ = "the engine stopped in this step";
  } else if (!lead_.run) {
    undiagnosed_ = "what was found has no first place";
  } else if (!engine_dumps) {
    undiagnosed_ = "the engine does not dump tensors";
  } else if (!KindOf(lead_.divergence.quantity) && !IsNumber(lead_.divergence.quantity) &&
             lead_.divergence.quantity != kDump) {
    undiagnosed_ = "no hypothesis speaks of it";
  }
  if (undiagnosed_.empty()) PlanRuns(source, probes);
}

// Numbers of the trace that hypotheses speak of.
bool Diagnosis::IsNumber(const std::string& quantity) {
  return quantity == kLoss || quantity == kRate || quantity == kNorm;
}

void Diagnosis::PlanRuns(const contract::TokenSource& source, ProbeCache& probes) {
  std::vector<DumpTask::Wanted> wanted;
  if (lead_.saved) wanted.push_back({*lead_.saved, {}});
  seen_run_ = wanted.size();
  wanted.push_back({UpTo(*lead_.run, step(), "/diagnosis"), {step()}});
  if (lead_.saved) wanted.back().run.resumes = 0;
  if (lead_.expected) {
    expected_run_ = wanted.size();
    std::vector<int64_t> steps = {step()};
    if (step() > lead_.expected->spec.first_step) steps.insert(steps.begin(), step() - 1);
    wanted.push_back({UpTo(*lead_.expected, step(), "/expected"), steps});
  } else {
    std::shared_ptr<ReferenceProbe>& probe = probes[ReferenceProbe::Key(*lead_.run, step())];
    if (!probe) probe = std::make_shared<ReferenceProbe>(*lead_.run, step(), source);
    reference_ = probe;
  }
  candidate_ = std::make_unique<DumpTask>(std::move(wanted));
}

std::optional<Diagnosis::Found> Diagnosis::FindTensor(const Dump& dump) const {
  if (lead_.divergence.quantity == kDump) {
    const std::optional<Disagreement> found = FirstDisagreement(dump);
    return found ? std::optional(Found{found->kind, found->tensor}) : std::nullopt;
  }
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model_);
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const contract::ParameterSpec& parameter) {
    return parameter.name == lead_.divergence.tensor;
  });
  if (found == parameters.end()) return std::nullopt;
  return Found{*KindOf(lead_.divergence.quantity), static_cast<size_t>(found - parameters.begin())};
}

reports::DivergenceRecord Diagnosis::Finish() const {
  reports::DivergenceRecord record = PlaceInText(lead_.divergence.detail, model_);
  record.undiagnosed = undiagnosed_;
  record.step = step();
  record.quantity = lead_.divergence.quantity;
  if (!lead_.divergence.tensor.empty()) {
    record.tensor = lead_.divergence.tensor;
    record.layer = LayerOf(record.tensor);
  }
  if (!candidate_) return record;
  const Dump* dump = candidate_->dump(seen_run_, step());
  if (!dump) {
    record.undiagnosed =
        candidate_->error().empty() ? "the run left no dump" : "run again for its dumps: " + candidate_->error();
    return record;
  }
  if (IsNumber(record.quantity)) {
    // Of two runs that should be equal, either may be the wrong one.
    const reports::DivergenceRecord of_seen = FinishNumber(*dump, record);
    const Dump* expected = lead_.expected ? candidate_->dump(expected_run_, step()) : nullptr;
    return expected && of_seen.ranks.empty() ? FinishNumber(*expected, std::move(record)) : of_seen;
  }
  const std::optional<Found> found = FindTensor(*dump);
  if (found) return FinishTensor(*found, *dump, std::move(record));
  if (record.quantity == kDump) return FinishDump(*dump, std::move(record));
  record.undiagnosed = "no tensor is named";
  return record;
}

// Ranks hold the same: it is their norm that is wrong, or what the trace states of a dump.
reports::DivergenceRecord Diagnosis::FinishDump(const Dump& dump, reports::DivergenceRecord record) const {
  reports::DivergenceRecord of_norm = record;
  of_norm.quantity = kNorm;
  of_norm = FinishNumber(dump, std::move(of_norm));
  if (!of_norm.ranks.empty()) return of_norm;
  for (TensorKind kind : contract::kTensorKinds) {
    for (const contract::ParameterSpec& parameter : contract::Parameters(model_)) {
      record.ranks = RanksOfOtherTrace(dump, kind, static_cast<size_t>(parameter.tensor_id), parameter.name);
      if (record.ranks.empty()) continue;
      record.tensor = parameter.name;
      record.layer = LayerOf(parameter.name);
      record.undiagnosed = "the trace states other numbers than the engine's own dump";
      return record;
    }
  }
  record.undiagnosed = "ranks hold the same when it is run again with dumps";
  return record;
}

void Diagnosis::Rank(const Evidence& evidence, reports::DivergenceRecord& record) {
  record.residual_limit = ResidualLimit(evidence);
  for (const RankedHypothesis& ranked : RankHypotheses(evidence)) {
    record.hypotheses.push_back({ranked.name, ranked.says, ranked.residual, ranked.fits});
  }
}

}  // namespace plumbline::conformance
