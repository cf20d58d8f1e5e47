// SPDX-License-Identifier: Apache-2.0
// Single steps that have nothing to do with each other: each begins at initial weights of a seed of its own, rounded to
// the storage type, on a batch of that seed. What scatters between them is therefore independent. One engine makes
// them; what their gradients mean is not judged here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/oracle/step_sight.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

// Step `number` of `base`. The weights are rounded to `storage`, which need not be the storage of `base`: an engine in
// fp64 computes the truth from the weights that one in bf16 has.
TaskRun UnrelatedStep(const contract::Case& base, int64_t number, contract::DType storage);

// The steps first ... first + count - 1 by one engine, of which the gradients are kept.
class UnrelatedStepsTask final : public RunTask {
 public:
  UnrelatedStepsTask(const contract::Case& base, int64_t first, int64_t count, contract::DType storage);

  std::vector<TaskRun> Runs() const override { return runs_; }
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

  const std::string& error() const { return error_; }
  // Valid without an error. Moved out of the task.
  std::vector<StepSight> TakeSights();

 private:
  std::vector<TaskRun> runs_;
  std::string error_;
  std::vector<std::optional<StepSight>> sights_;
};

// Leaves the gradients alone: hundreds of steps are held at once.
void KeepGradients(StepSight& sight);

}  // namespace plumbline::conformance
