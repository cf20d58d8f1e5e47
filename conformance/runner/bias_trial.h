// SPDX-License-Identifier: Apache-2.0
// The trial of an engine in bf16 that searches for a small constant factor in one gradient (oracle/bias_check.h): many
// unrelated steps, judged together, and the traces of each. Updates, relations and losses are judged in other cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/engine_protocol.h"
#include "conformance/runner/bias_truth.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/run_ends.h"
#include "conformance/runner/trial.h"

namespace plumbline::conformance {

class BiasTrial final : public Trial {
 public:
  // The truth is finished. References must outlive it.
  BiasTrial(const contract::Case& base, const contract::EngineDescription& description, const BiasTruth& truth);

  std::vector<TaskRun> Runs() const override;
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

 private:
  struct Run {
    TaskRun task_run;
    std::optional<Observation> seen;
    std::optional<SightResult> sight;
    int64_t first_untraced = 0;  // of a run that did not end well
  };

  std::vector<RunEnd> Ends() const;
  Judgement Judge() const;
  void AddGuard(Judgement& judgement);  // of one that passes
  std::optional<Lead> MakeLead() const;
  std::vector<StepSight> Sights() const;

  std::string id_;  // of the case
  contract::ModelSpec model_;
  const contract::EngineDescription& description_;
  const BiasTruth& truth_;
  std::vector<Run> runs_;
  Guard guard_;
};

}  // namespace plumbline::conformance
