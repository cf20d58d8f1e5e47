// SPDX-License-Identifier: Apache-2.0
// Family exact: the truth of a problem as runs of the reference, and the trial of an engine against it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/runner/observation.h"
#include "conformance/runner/trial.h"
#include "conformance/runner/truth.h"

namespace plumbline::conformance {

class ExactTruthTask final : public RunTask {
 public:
  ExactTruthTask(const Problem& problem, const PlanOptions& options) : runs_(TruthRuns(problem, options)) {}

  std::vector<TaskRun> Runs() const override;
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

  // Reads what the runs left; call it when all are taken, and before truth().
  void Finish();
  const Truth& truth() const { return truth_; }

 private:
  std::vector<TruthRun> runs_;
  std::map<size_t, std::filesystem::path> out_dirs_;
  std::optional<std::string> first_error_;
  Truth truth_;
};

// What is judged: equality with the truth, and everything that the traces alone show.
Judgement JudgeExact(const contract::Case& spec, const Truth& truth, const Observation& seen);

// Where the whole run is no failure already: adds what the run shows that resumed from its checkpoint, the second of
// the trial.
Judgement WithResumed(Judgement judgement, const contract::ModelSpec& model, const RunDigest& whole,
                      const Observation& resumed);

// An engine with the feature `save` saves near the end of its run, and its last steps are made again from there.
class ExactTrial final : public Trial {
 public:
  // All references must outlive it.
  ExactTrial(contract::Case spec, const contract::EngineDescription& description, const ExactTruthTask& truth);

  std::vector<TaskRun> Runs() const override;
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

 private:
  struct Run {
    TaskRun task_run;
    contract::Case traced;  // what the trace must look like
    std::optional<Observation> seen = std::nullopt;
    int64_t first_untraced = -1;  // step, of a run that did not end well
  };

  Judgement Judge();
  std::optional<Lead> MakeLead() const;

  contract::Case spec_;
  const contract::EngineDescription& description_;
  const ExactTruthTask& truth_;
  std::vector<Run> runs_;  // the whole, and the one that resumes from its checkpoint
  Guard guard_;            // of the whole run
};

}  // namespace plumbline::conformance
