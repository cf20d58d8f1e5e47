// SPDX-License-Identifier: Apache-2.0
// The trials of the planted defects: each defect on the cases of its family, in one start of the switchable engine that
// ends early where the caller wants no more than the first kill. Their judgements become the lines of the kill table.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "conformance/engines/engine_program.h"
#include "conformance/engines/run_cases.h"
#include "conformance/runner/defect_judge.h"
#include "conformance/runner/defect_plan.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/trial.h"
#include "conformance/runner/truths.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

// Whether a defect is caught for good: a check that is expected to catch it has. Where any will do, a run that did not
// end well is enough, before its trial is judged (`judgement` is null).
bool IsKill(const ListedDefect& defect, const CaseOutcome& outcome, const Judgement* judgement);

class DefectRuns {
 public:
  // `program`: the switchable engine. The plan is kept; it may be moved in.
  DefectRuns(DefectPlan plan, const std::filesystem::path& program);

  const DefectPlan& plan() const { return plan_; }
  size_t size() const { return runs_.size(); }

  // One start for each defect. Engines, descriptions and truths must outlive the schedule.
  void AddTo(Schedule& schedule, const Truths& truths, const contract::EngineDescription& description);

  // To be called when a task's run was taken: ends the start of its defect if that is killed. Nothing for other tasks.
  void StopAtKill(const RunTask* task, const CaseOutcome& outcome);

  // After all runs. After a stop request a trial without a verdict is NOT_RUN.
  std::vector<reports::DefectRecord> Judge(bool stopped) const;

  // What is told of a defect: which trial, of which case.
  struct Told {
    const Trial* trial = nullptr;
    const PlannedCase* entry = nullptr;
    const EngineProgram* program = nullptr;
  };
  // Of the defect with this number; nothing where every case passed.
  std::optional<Told> ToldOf(size_t number, bool stopped) const;

 private:
  struct Run {
    const ListedDefect* listed = nullptr;
    EngineProgram program;
    std::vector<std::unique_ptr<Trial>> trials;  // of the cases of its family
    std::stop_source enough;
  };

  const std::vector<PlannedCase>& CasesOf(const Run& run) const { return plan_.cases.at(run.listed->family); }
  std::vector<DefectFinding> Findings(const Run& run, bool stopped) const;

  DefectPlan plan_;
  std::vector<Run> runs_;
  std::map<const RunTask*, std::pair<size_t, const Trial*>> defect_of_;
};

}  // namespace plumbline::conformance
