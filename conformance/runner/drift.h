// SPDX-License-Identifier: Apache-2.0
// How far the losses of a right engine may drift from the truth's in a whole run: the plain engine trains the problem
// several times, each time from master weights that were disturbed by at most half an ulp of the storage type.
//
// Two undisturbed runs share nearly every rounding to storage and show one drift twice; a disturbance of the size of a
// rounding makes every later rounding fall anew, so that runs are samples (docs/tolerance.md, "Trajectories").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

// Each gives the limit a degree of freedom (docs/tolerance.md). In fp32 few are enough: the limit is that of the loss's
// own sum, above theirs.
constexpr int NumDriftRuns(contract::DType storage) { return storage == contract::DType::kF32 ? 4 : 10; }

// Every master weight times 1 + h x, h half an ulp of `storage`, relative (2^-24, 2^-9, 2^-12), x uniform in [-1, 1) and other
// for another `number` or seed. Moments are kept; frozen weights (without a state) too.
RealStart Disturbed(const RealStart& start, contract::DType storage, uint64_t seed, int number);

// The runs of one problem in one storage type, in the plain layout.
class DriftTask final : public RunTask {
 public:
  // `start`: the undisturbed beginning.
  DriftTask(const Problem& problem, const PlanOptions& options, contract::DType storage, const RealStart& start,
            const contract::EngineDescription& plain);

  std::vector<TaskRun> Runs() const override { return runs_; }
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

  const std::string& error() const { return error_; }                         // one line if a run has failed
  const std::vector<std::vector<double>>& losses() const { return losses_; }  // [run][step]

 private:
  std::vector<TaskRun> runs_;
  const contract::EngineDescription& description_;
  std::string error_;
  std::vector<std::vector<double>> losses_;
};

}  // namespace plumbline::conformance
