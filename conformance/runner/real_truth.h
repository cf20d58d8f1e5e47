// SPDX-License-Identifier: Apache-2.0
// What a problem of a real family is judged by: the states that single steps begin at, the truth of these steps (fp64),
// two plain engines on them in each storage type, and the plain engine's whole runs from disturbed weights.
//
// A second engine in fp64, the witness, must agree with the reference on every one of the fp32 steps, or there is no
// truth. First the reference trains the problem once: that gives the states and the truth's losses. Then reference and
// plain engines make single steps from these states. Where storage is bf16 the injected master weights are rounded to
// it, so that all compute from the same weights. So in fp16, where each state has a loss scale of its own besides.
// With clipping by history the last of the states has a history of its own, by which its step is clipped whatever the
// others are, and which is at the end of its warm-up.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/problem.h"
#include "conformance/contract/batch_source.h"
#include "conformance/contract/dtype.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/step_sight.h"
#include "conformance/runner/drift.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/real_runs.h"
#include "conformance/runner/run_task.h"
#include "conformance/runner/skipped_start.h"

namespace plumbline::conformance {

// The states, in the order of InjectedSteps.
using RealStarts = std::vector<std::shared_ptr<const RealStart>>;

// The reference's run over all steps.
class RealTrajectoryTask final : public RunTask {
 public:
  RealTrajectoryTask(const Problem& problem, const PlanOptions& options);

  std::vector<TaskRun> Runs() const override { return {{spec_}}; }
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

  const std::string& error() const { return error_; }  // one line if there is no trajectory
  const std::vector<double>& losses() const { return losses_; }
  int64_t most_tokens() const { return most_tokens_; }  // of one step
  // Empty before the run was taken, and where it failed. Shared by all trials of the problem.
  const RealStarts& Starts(contract::DType storage) const;

 private:
  contract::Case spec_;
  std::string error_;
  std::vector<double> losses_;
  int64_t most_tokens_ = 0;
  std::map<contract::DType, RealStarts> starts_;
  contract::DynamicLossScale fp16_dynamic_;
};

// An engine's single steps: one line of the yardstick.
class RealLineTask final : public RunTask {
 public:
  // `base`: the whole trajectory in the layout of this line.
  RealLineTask(const contract::Case& base, const RealStarts& starts);

  std::vector<TaskRun> Runs() const override { return runs_; }
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

  const std::string& error() const { return error_; }
  std::vector<StepSight> sights() const;  // valid without an error

 private:
  std::vector<TaskRun> runs_;
  std::string error_;
  std::vector<std::optional<StepSight>> sights_;
};

// All of it for one problem. Use: run trajectory(); MakeLines(); run the lines; Finish().
class RealTruth {
 public:
  // `storages`: those in which cases are judged. `source` must outlive it.
  RealTruth(const Problem& problem, const std::set<contract::DType>& storages, const PlanOptions& options,
            const contract::TokenSource& source)
      : problem_(problem), storages_(storages), options_(options), source_(source), trajectory_(problem, options) {}

  RunTask& trajectory() { return trajectory_; }
  // `plain` describes the engine that runs plain_lines(), and must outlive this.
  void MakeLines(const contract::EngineDescription& plain);
  std::vector<RunTask*> truth_lines();
  std::vector<RunTask*> plain_lines();
  void Finish();

  const std::string& error() const { return error_; }
  const reports::CheckRecord& truth_check() const { return truth_check_; }  // reference against witness
  const RealStarts& Starts(contract::DType storage) const { return trajectory_.Starts(storage); }
  // States before kSkippedStep (skipped_start.h). None without a trajectory.
  const std::vector<SkippedStart>& skipped_starts() const { return skipped_starts_; }
  // Of one of the storages.
  const Yardstick& yardstick(contract::DType storage) const { return yardsticks_.at(storage); }
  const std::vector<double>& losses() const { return trajectory_.losses(); }
  int64_t most_tokens() const { return trajectory_.most_tokens(); }
  // Of whole runs of the plain engine from disturbed weights, [run][step].
  const std::vector<std::vector<double>>& drifted_losses(contract::DType storage) const {
    return lines_.at(storage).drift->losses();
  }

 private:
  // Of fp32, if no case is judged in it, only the truth, which the witness must agree with.
  struct Lines {
    std::unique_ptr<RealLineTask> truth, plain, other_plain;
    std::unique_ptr<DriftTask> drift;  // none without a trajectory
  };

  void AddSkippedStarts();
  void CheckWitness();

  Problem problem_;
  std::set<contract::DType> storages_;
  PlanOptions options_;
  const contract::TokenSource& source_;
  RealTrajectoryTask trajectory_;
  std::vector<SkippedStart> skipped_starts_;
  std::map<contract::DType, Lines> lines_;
  std::unique_ptr<RealLineTask> witness_;  // fp64, from the states of fp32
  reports::CheckRecord truth_check_;
  std::map<contract::DType, Yardstick> yardsticks_;
  std::string error_;
};

}  // namespace plumbline::conformance
