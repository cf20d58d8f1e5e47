// SPDX-License-Identifier: Apache-2.0
// A real family: the trial of an engine on one layout. Single steps from states of the truth are judged by the
// yardstick and by the closed form of the update; the trajectory by relations that hold bit for bit (with itself, with
// its own resumed half, with the simplest layout that sums in the same order) and by its losses; skipped steps by what
// they leave, and by the step after them, in the same process and resumed; a dynamic loss scale by its formula, also
// where it makes all steps overflow; all runs by what their traces show.
// Relations are demanded of engines that claim the feature `deterministic`, resuming of those with `save`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/engine_protocol.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/real_truth.h"
#include "conformance/runner/run_ends.h"
#include "conformance/runner/trial.h"

namespace plumbline::conformance {

// Whether a run of the same engine with ranks that are threads is made beside, and must have the same bits.
enum class Beside { kNothing, kThreads };

class RealTrial final : public Trial {
 public:
  // `base`: the trajectory. The truth is finished. References must outlive it.
  RealTrial(contract::Case base, const contract::EngineDescription& description, const RealTruth& truth,
            Beside beside = Beside::kNothing);

  std::vector<TaskRun> Runs() const override;
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

 private:
  enum class Part {
    kTrajectory,
    kAgain,
    kResumed,
    kRelated,
    kThreads,
    kStep,
    kUnrounded,
    kSkipped,
    kSkippedResumed,
    kOverflow
  };

  struct Run {
    Part part;
    TaskRun task_run;
    contract::Case traced;  // what the trace must look like
    std::optional<Observation> seen;
    std::optional<SightResult> sight;            // of the first step that is traced
    std::optional<SightResult> following_sight;  // of the step after a skipped one
    int64_t first_untraced = -1;                 // step, of a run that did not end well
  };

  Judgement Judge() const;
  std::optional<Lead> MakeLead() const;
  std::vector<RunEnd> Ends() const;
  const Run* Find(Part part) const;
  // The state that the engine holds before the run's first step; null: the initial one, or that of half a trajectory.
  const RealStart* StartOf(const Run& run) const;
  void AddSkipped(const SkippedStart& start);
  void AddOverflow();
  void AddTraceChecks(Judgement& judgement) const;
  std::optional<std::vector<StepSight>> StepSights() const;  // none where one could not be read
  void AddStepChecks(Judgement& judgement) const;
  void AddUpdateChecks(Judgement& judgement) const;
  void AddClippedCheck(Judgement& judgement) const;
  void AddScaleChecks(Judgement& judgement) const;
  // The loss scaler before the run's first step; none where the run that it goes on from has no trace.
  std::optional<contract::LossScaler> ScalerBefore(const Run& run) const;
  void AddRelations(Judgement& judgement) const;
  void AddTrajectory(Judgement& judgement) const;
  void AddGuard(Judgement& judgement);  // of one that passes

  contract::Case base_;
  const contract::EngineDescription& description_;
  const RealTruth& truth_;
  std::vector<Run> runs_;
  Guard guard_;
};

}  // namespace plumbline::conformance
