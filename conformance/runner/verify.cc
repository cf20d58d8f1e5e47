// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/runner/case_hands.h"
#include "conformance/runner/defect_plan.h"
#include "conformance/runner/defect_runs.h"
#include "conformance/runner/diagnosis_phase.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/lone_case_file.h"
#include "conformance/runner/reruns.h"
#include "conformance/runner/saved_failures.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/shrink_phase.h"
#include "conformance/runner/trial.h"
#include "conformance/runner/truths.h"
#include "conformance/runner/verify_engines.h"
#include "conformance/runner/verify_record.h"

namespace plumbline::conformance {
namespace {

using reports::Verdict;

// Many generated mutants never end: a start of them gets little more than a case.
constexpr double kListedStartAllowanceSeconds = 5;

// The cases, those of the clean twin behind them.
Plan CasesOf(const VerifyOptions& options, const DefectPlan& defects) {
  Plan plan = MakePlan(options.plan);
  if (!options.run_cases) plan.cases.clear();
  plan.cases.insert(plan.cases.end(), defects.twins.begin(), defects.twins.end());
  return plan;
}

NeededTruths TruthsFor(const Plan& plan, const DefectPlan& defects) {
  NeededTruths needed;
  const auto add = [&](const PlannedCase& entry) {
    if (!entry.relation) needed[entry.problem].insert(entry.spec.config.storage);
  };
  for (const PlannedCase& entry : plan.cases) add(entry);
  for (const ListedDefect& listed : defects.defects) {
    for (const PlannedCase& entry : defects.cases.at(listed.family)) add(entry);
  }
  return needed;
}

bool HasRole(const Plan& plan, Role role) {
  return std::any_of(plan.cases.begin(), plan.cases.end(),
                     [role](const PlannedCase& entry) { return entry.role == role; });
}

// The witness is also the yardstick of the real families.
bool NeedsWitness(const Plan& plan, const NeededTruths& needed) {
  const bool real = std::any_of(needed.begin(), needed.end(), [&](const auto& truth) {
    return !plan.list.problems[static_cast<size_t>(truth.first)].model.is_exact();
  });
  return real || HasRole(plan, Role::kWitness);
}

// Runs the phases, in their order, and keeps what each needs of those before.
class Verification {
 public:
  Verification(const VerifyOptions& options, std::stop_token stop,
               const std::function<void(const VerifyProgress&)>& progress)
      : options_(options),
        stop_(std::move(stop)),
        progress_(progress),
        source_(contract::ReadTokenSource(options.text)),
        defects_(PlanDefects(options), options.engines.optimized_defects),
        plan_(CasesOf(options, defects_.plan())),
        needed_(TruthsFor(plan_, defects_.plan())),
        engines_(DescribeEngines(options, NeedsWitness(plan_, needed_), HasRole(plan_, Role::kProcesses))) {}

  reports::Record Run() {
    Truths truths(plan_.list, needed_, options_.plan, source_);
    RunTruths(truths);
    Schedule schedule(source_, options_.work_dir, stop_);
    RunTrials(truths, schedule);
    reports::Record record = NewRecord(options_, engines_, static_cast<int64_t>(plan_.cases.size()));
    for (size_t i = 0; i < plan_.cases.size(); ++i) record.cases.push_back(RecordOfCase(i));
    const auto goes_on = [&] { return !stop_.stop_requested() && !options_.verdicts_only; };
    if (goes_on()) RerunFailures(truths, record);
    record.defects = defects_.Judge(stop_.stop_requested());
    if (goes_on()) Diagnose(record);
    if (!stop_.stop_requested() && options_.shrink_s > 0) MakeSmaller(truths, record);
    record.interrupted = stop_.stop_requested();
    reports::Finish(record, options_.require);
    KeepFailures(schedule);
    return record;
  }

 private:
  void RunTruths(Truths& truths) {
    Schedule first(source_, options_.work_dir / "first", stop_);
    truths.ScheduleTrajectories(engines_.reference, first);
    RunAll(first, "the reference trains (1 of 3)");
    Schedule second(source_, options_.work_dir / "second", stop_);
    truths.ScheduleRest(engines_.reference, engines_.witness, options_.jobs, second);
    RunAll(second, "truths and plain runs (2 of 3)");
    truths.Finish();
  }

  void RunTrials(const Truths& truths, Schedule& schedule) {
    ScheduleCases(truths, schedule);
    defects_.AddTo(schedule, truths, engines_.switchable.description);
    RunLimits limits;
    if (options_.listed_defects) limits.start_allowance_s = kListedStartAllowanceSeconds;
    RunAll(schedule, "cases (3 of 3)", limits);
  }

  // Cases that the description declines are not started, nor those of an engine that this machine cannot run.
  void ScheduleCases(const Truths& truths, Schedule& schedule) {
    declined_.resize(plan_.cases.size());
    trials_.resize(plan_.cases.size());
    std::vector<bool> starts;
    for (size_t i = 0; i < plan_.cases.size(); ++i) {
      const PlannedCase& entry = plan_.cases[i];
      const contract::EngineDescription& description = engines_.Of(entry.role).description;
      const bool absent = engines_.absent && entry.role == Role::kCandidate;
      if (!absent) declined_[i] = Declined(description, entry.spec);
      if (!absent && !declined_[i]) trials_[i] = truths.MakeTrial(entry, description);
      starts.push_back(trials_[i] != nullptr);
    }
    const auto add = [&](const Engine& engine, const std::vector<size_t>& hand) {
      std::vector<RunTask*> tasks;
      for (size_t i : hand) tasks.push_back(trials_[i].get());
      schedule.Add(engine.program, engine.description, tasks);
    };
    const CaseHands hands = DealCases(plan_.cases, starts, options_.jobs);
    for (const std::vector<size_t>& hand : hands.candidate) add(engines_.candidate, hand);
    add(engines_.witness, hands.witness);
    add(engines_.switchable, hands.twins);
    add(engines_.processes, hands.processes);
    std::vector<RunTask*> processes;
    for (size_t i : hands.processes) processes.push_back(trials_[i].get());
    schedule.AddThreads(engines_.candidate.program, engines_.candidate.description, processes);
  }

  void RunAll(const Schedule& schedule, std::string_view phase, const RunLimits& limits = RunLimits{}) {
    std::mutex mutex;
    VerifyProgress state;
    state.phase = phase;
    state.total = static_cast<int64_t>(schedule.runs().size());
    const auto start = std::chrono::steady_clock::now();
    const auto on_taken = [&](size_t number, const CaseOutcome& outcome) {
      const ScheduledRun& run = schedule.runs()[number];
      RemoveUnneeded(schedule, number);
      if (options_.first_kill) defects_.StopAtKill(run.task, outcome);
      const std::lock_guard lock(mutex);
      logs_[run.out_dir] = outcome.log;
      seconds_[run.task] += outcome.wall_s;
      ++state.done;
      state.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      state.last = run.spec.id;
      progress_(state);
    };
    RunSchedule(schedule, options_.jobs, options_.work_dir / "engines", on_taken, limits);
  }

  // At once: thousands of files that were never written to the disk are removed in no time, which at the end of a run
  // takes seconds.
  void RemoveUnneeded(const Schedule& schedule, size_t number) const {
    std::vector<std::filesystem::path> dirs = schedule.Unneeded(number);
    const auto* trial = dynamic_cast<const Trial*>(schedule.runs()[number].task);
    const bool did_not_fail = trial != nullptr && trial->is_judged() && !Failed(trial->judgement().verdict);
    if (did_not_fail && !options_.keep) dirs = schedule.FoldersOf(*trial);
    for (const std::filesystem::path& dir : dirs) {
      std::error_code ignored;  // a folder that stays is removed with work_dir
      std::filesystem::remove_all(dir, ignored);
    }
  }

  Judgement JudgementOf(size_t index) const {
    if (trials_[index]) return UnlessInterrupted(trials_[index]->judgement(), stop_.stop_requested());
    if (!declined_[index]) return NotStarted(Verdict::kNotRun, *engines_.absent);
    return NotStarted(Verdict::kUnsupported, *declined_[index]);
  }

  reports::CaseRecord RecordOfCase(size_t index) const {
    const PlannedCase& entry = plan_.cases[index];
    const auto seconds = seconds_.find(trials_[index].get());
    return RecordOf(entry, JudgementOf(index), engines_.Of(entry.role).description.name,
                    seconds == seconds_.end() ? 0 : seconds->second, options_);
  }

  void RerunFailures(const Truths& truths, reports::Record& record) {
    Schedule again(source_, options_.work_dir / "again", stop_);
    std::map<size_t, std::unique_ptr<Trial>> trials;
    for (size_t i : FailedCases(record)) {
      const Engine& engine = engines_.Of(plan_.cases[i].role);
      trials[i] = truths.MakeTrial(plan_.cases[i], engine.description);
      again.Add(engine.program, engine.description, {trials[i].get()});
      again.AddThreads(engines_.candidate.program, engines_.candidate.description, {trials[i].get()});
    }
    if (trials.empty()) return;
    RunAll(again, "failed cases again");
    for (const auto& [i, trial] : trials) {
      const Judgement second = UnlessInterrupted(trial->judgement(), stop_.stop_requested());
      record.cases[i].message += RemarkOnRerun(record.cases[i].message, second);
    }
  }

  // First divergence and hypotheses of what failed. Runs the engine again, and the reference on parts of batches.
  void Diagnose(reports::Record& record) {
    DiagnosisPhase phase(source_);
    for (size_t i : FailedCases(record)) {
      const Engine& engine = engines_.Of(plan_.cases[i].role);
      phase.Add({trials_[i].get(), &plan_.cases[i].spec.model, &engine.program, &engine.description,
                 &record.cases[i].divergence});
    }
    for (size_t i = 0; i < defects_.size() && !options_.listed_defects; ++i) {
      const auto told = defects_.ToldOf(i, stop_.stop_requested());
      if (!told || !record.defects[i].caught) continue;
      phase.Add({told->trial, &told->entry->spec.model, told->program, &engines_.switchable.description,
                 &record.defects[i].divergence});
    }
    Schedule schedule(source_, options_.work_dir / "diagnosis", stop_);
    phase.AddRuns(engines_.reference.program, engines_.reference.description, schedule);
    RunAll(schedule, "diagnosis of failed cases");
    phase.Finish();
  }

  // Of the engine under test only: the twin's failures are run by --self-test, the witness's show in every truth. A
  // case file is judged by a truth, so a relation that does not hold is no case of one.
  void MakeSmaller(const Truths& truths, reports::Record& record) {
    std::vector<ShrinkSubject> subjects;
    for (size_t i = 0; i < plan_.cases.size(); ++i) {
      if (plan_.cases[i].role != Role::kCandidate || plan_.cases[i].relation || !trials_[i]) continue;
      // A bias shows only in many large steps: nothing smaller would fail for the same reason.
      const Problem& problem = plan_.list.problems[static_cast<size_t>(plan_.cases[i].problem)];
      if (problem.unrelated_states > 0) continue;
      subjects.push_back({&plan_.cases[i], JudgementOf(i), &record.cases[i].shrunk});
    }
    const auto progress = [&](const std::string& id, int64_t tried, double left_s) {
      progress_({"", tried, tried, 0, id, left_s});
    };
    ShrinkFailures({{&engines_.reference, &engines_.witness, &engines_.candidate},
                    source_,
                    truths,
                    options_.work_dir,
                    options_.failures_dir,
                    options_.jobs,
                    options_.shrink_s,
                    [&](const std::filesystem::path& file) { return RunCaseFile(file); },
                    options_.line_of_case_file,
                    progress},
                   subjects, stop_);
  }

  // What `verify --case-file FILE` runs.
  reports::CaseRecord RunCaseFile(const std::filesystem::path& file) const {
    VerifyOptions options = options_;
    options.plan = LonePlanOptions(ReadLoneCase(file));
    options.work_dir = options_.work_dir / "case-file";
    std::filesystem::remove_all(options.work_dir);
    std::filesystem::create_directory(options.work_dir);
    options.failures_dir = options.work_dir / "failures";
    options.run_cases = true;
    options.run_defects = false;
    options.listed_defects.reset();
    options.verdicts_only = true;
    options.shrink_s = 0;
    return Verify(options, stop_, [](const VerifyProgress&) {}).cases.at(0);
  }

  void KeepFailures(const Schedule& schedule) const {
    std::map<const RunTask*, const PlannedCase*> failed;
    for (size_t i = 0; i < trials_.size(); ++i) {
      if (Failed(JudgementOf(i).verdict)) failed[trials_[i].get()] = &plan_.cases[i];
    }
    SaveFailures(schedule, failed, logs_, options_.failures_dir);
  }

  const VerifyOptions& options_;
  std::stop_token stop_;
  const std::function<void(const VerifyProgress&)>& progress_;
  contract::TokenSource source_;

  DefectRuns defects_;
  Plan plan_;
  NeededTruths needed_;
  VerifyEngines engines_;

  std::vector<std::optional<std::string>> declined_;  // by case: why it is not started
  std::vector<std::unique_ptr<Trial>> trials_;        // by case; none where it is declined or its engine absent
  std::map<const RunTask*, double> seconds_;
  std::map<std::filesystem::path, std::filesystem::path> logs_;  // by out_dir
};

}  // namespace

reports::Record Verify(const VerifyOptions& options, std::stop_token stop,
                       const std::function<void(const VerifyProgress&)>& progress) {
  return Verification(options, std::move(stop), progress).Run();
}

}  // namespace plumbline::conformance
