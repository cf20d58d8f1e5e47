// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/defect_runs.h"

#include <algorithm>

namespace plumbline::conformance {

bool IsKill(const ListedDefect& defect, const CaseOutcome& outcome, const Judgement* judgement) {
  const std::vector<std::string>& expected = defect.expected;
  if (expected.empty() && outcome.kind != CaseOutcome::Kind::kOk) return true;
  if (!judgement) return false;
  const reports::DefectRecord seen = JudgeDefect(defect.id, defect.title, {{"", *judgement}});
  return std::any_of(seen.caught_by.begin(), seen.caught_by.end(), [&](const std::string& check) {
    return expected.empty() || std::find(expected.begin(), expected.end(), check) != expected.end();
  });
}

DefectRuns::DefectRuns(DefectPlan plan, const std::filesystem::path& program) : plan_(std::move(plan)) {
  for (const ListedDefect& listed : plan_.defects) {
    runs_.push_back({&listed, {program, {"--defect", listed.id}}, {}, std::stop_source()});
  }
}

void DefectRuns::AddTo(Schedule& schedule, const Truths& truths, const contract::EngineDescription& description) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    std::vector<RunTask*> tasks;
    for (const PlannedCase& entry : CasesOf(run)) {
      run.trials.push_back(truths.MakeTrial(entry, description));
      tasks.push_back(run.trials.back().get());
      defect_of_[tasks.back()] = {i, run.trials.back().get()};
    }
    schedule.Add(run.program, description, tasks, /*keep=*/false, run.enough);
  }
}

void DefectRuns::StopAtKill(const RunTask* task, const CaseOutcome& outcome) {
  const auto found = defect_of_.find(task);
  if (found == defect_of_.end()) return;
  Run& run = runs_[found->second.first];
  const Trial& trial = *found->second.second;
  if (IsKill(*run.listed, outcome, trial.is_judged() ? &trial.judgement() : nullptr)) run.enough.request_stop();
}

std::vector<DefectFinding> DefectRuns::Findings(const Run& run, bool stopped) const {
  std::vector<DefectFinding> findings;
  const std::vector<PlannedCase>& cases = CasesOf(run);
  for (size_t i = 0; i < cases.size(); ++i) {
    findings.push_back({cases[i].id, UnlessInterrupted(run.trials[i]->judgement(), stopped)});
  }
  return findings;
}

std::vector<reports::DefectRecord> DefectRuns::Judge(bool stopped) const {
  std::vector<reports::DefectRecord> records;
  for (const Run& run : runs_) {
    records.push_back(JudgeDefect(run.listed->id, run.listed->title, Findings(run, stopped)));
    records.back().expect = run.listed->expect;
    records.back().hypothesis = run.listed->hypothesis;
  }
  return records;
}

std::optional<DefectRuns::Told> DefectRuns::ToldOf(size_t number, bool stopped) const {
  const Run& run = runs_[number];
  const std::vector<DefectFinding> findings = Findings(run, stopped);
  const DefectFinding* told = ToldFinding(findings);
  if (!told) return std::nullopt;
  const auto place = static_cast<size_t>(told - findings.data());
  return Told{run.trials[place].get(), &CasesOf(run)[place], &run.program};
}

}  // namespace plumbline::conformance
