// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify.h"

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/error.h"
#include "conformance/runner/defect_judge.h"
#include "conformance/runner/defect_list.h"
#include "conformance/runner/diagnosis_phase.h"
#include "conformance/runner/environment.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/lone_case_file.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/shrink_phase.h"
#include "conformance/runner/trial.h"
#include "conformance/runner/truths.h"

namespace plumbline::conformance {
namespace {

using reports::Verdict;

// Cases that failed are run once more, alone, and diagnosed: at most this many, so that a broken engine does not double
// the time.
constexpr size_t kMaxReruns = 5;

// Many generated mutants never end: a start of them gets little more than a case.
constexpr double kListedStartAllowanceSeconds = 5;

// A defect, the engine that carries it, and the cases of its family.
struct DefectRun {
  ListedDefect listed;
  EngineProgram program;
  std::vector<std::unique_ptr<Trial>> trials;  // of defect_cases_[family]
  std::stop_source enough;
};

class Verification {
 public:
  Verification(const VerifyOptions& options, std::stop_token stop,
               const std::function<void(const VerifyProgress&)>& progress)
      : options_(options),
        stop_(std::move(stop)),
        progress_(progress),
        source_(contract::ReadTokenSource(options.text)) {}

  reports::Record Run() {
    MakeLists();
    DescribeEngines();
    Truths truths(plan_.list, Problems(), options_.plan, source_);
    Schedule first(source_, options_.work_dir / "first");
    truths.ScheduleTrajectories(reference_, first);
    RunAll(first, "the reference trains (1 of 3)");
    Schedule second(source_, options_.work_dir / "second");
    truths.ScheduleRest(reference_, witness_, second);
    RunAll(second, "truths and plain runs (2 of 3)");
    truths.Finish();
    Schedule schedule(source_, options_.work_dir);
    ScheduleCases(truths, schedule);
    ScheduleDefects(truths, schedule);
    RunLimits limits;
    if (options_.listed_defects) limits.start_allowance_s = kListedStartAllowanceSeconds;
    RunAll(schedule, "cases (3 of 3)", limits);
    reports::Record record = NewRecord();
    for (size_t i = 0; i < plan_.cases.size(); ++i) record.cases.push_back(JudgeCase(i));
    if (!stop_.stop_requested() && !options_.verdicts_only) RerunFailures(truths, record);
    for (const DefectRun& defect : defects_) record.defects.push_back(JudgeDefectRun(defect));
    if (!stop_.stop_requested() && !options_.verdicts_only) Diagnose(record);
    if (!stop_.stop_requested() && options_.shrink_s > 0) MakeSmaller(truths, record);
    record.interrupted = stop_.stop_requested();
    reports::Finish(record, options_.require);
    SaveFailures(schedule);
    return record;
  }

 private:
  void MakeLists() {
    plan_ = MakePlan(options_.plan);
    if (!options_.run_cases) plan_.cases.clear();
    if (!options_.run_defects) return;
    int64_t index = 0;
    for (const ListedDefect& listed :
         options_.listed_defects ? *options_.listed_defects : PlantedDefects(options_.all_defects)) {
      if (!defect_cases_.contains(listed.family)) defect_cases_[listed.family] = CasesForDefects(listed.family);
      if (!IsOfShard(index++)) continue;
      defects_.push_back(
          {listed, {options_.engines.optimized_defects, {"--defect", listed.id}}, {}, std::stop_source()});
    }
    AddCleanTwin();
  }

  std::vector<PlannedCase> CasesForDefects(const std::string& family) const {
    if (!options_.listed_defects) return DefectCases(family, options_.plan);
    PlanOptions plan = options_.plan;
    plan.timeout_s = options_.listed_timeout_s;
    std::vector<PlannedCase> cases = DefectCases(family, plan);
    cases.resize(std::min(cases.size(), options_.listed_cases_at_most.value_or(cases.size())));
    return cases;
  }

  bool IsOfShard(int64_t index) const {
    const Selection& selection = options_.plan.selection;
    return index % selection.shard_count == selection.shard_index - 1;
  }

  // The switchable copy with every defect off must pass like the product, or what it shows about defects means nothing.
  void AddCleanTwin() {
    int64_t index = 0;
    for (const auto& [family, cases] : defect_cases_) {
      for (PlannedCase twin : cases) {
        if (!IsOfShard(index++)) continue;
        twin.role = Role::kCleanTwin;
        if (options_.listed_defects) twin.spec.timeout_s = options_.plan.timeout_s;
        twin.id = "clean-twin/" + twin.id;
        plan_.cases.push_back(std::move(twin));
      }
    }
  }

  // Those that need a truth.
  std::set<int> Problems() const {
    std::set<int> problems;
    for (const PlannedCase& entry : plan_.cases) {
      if (!entry.relation) problems.insert(entry.problem);
    }
    for (const DefectRun& defect : defects_) {
      for (const PlannedCase& entry : defect_cases_.at(defect.listed.family)) problems.insert(entry.problem);
    }
    return problems;
  }

  void DescribeEngines() {
    const auto describe = [this](EngineProgram program) {
      return Engine{program, Describe(program, options_.plan.timeout_s)};
    };
    reference_ = describe({options_.engines.reference, {}});
    if (options_.foreign_engine) {
      DescribeForeignEngine(*options_.foreign_engine);
    } else {
      candidate_ = describe({options_.engines.optimized, {}});
    }
    // The witness is also the yardstick of the real families.
    const std::set<int> problems = Problems();
    const bool real = std::any_of(problems.begin(), problems.end(), [&](int problem) {
      return !plan_.list.problems[static_cast<size_t>(problem)].model.is_exact();
    });
    const bool witness = std::any_of(plan_.cases.begin(), plan_.cases.end(),
                                     [](const PlannedCase& entry) { return entry.role == Role::kWitness; });
    if (witness || real) witness_ = describe({options_.engines.torch_eager, {}});
    if (options_.run_defects) switchable_ = describe({options_.engines.optimized_defects, {}});
  }

  // An engine that says exit code 4 lacks something on this machine, a device or a library: its cases are NOT_RUN.
  void DescribeForeignEngine(const EngineProgram& program) {
    candidate_.program = program;
    try {
      candidate_.description = Describe(program, options_.plan.timeout_s);
    } catch (const contract::Error& error) {
      if (error.code() != contract::ErrorCode::kEnvironment) throw;
      candidate_.description.name = program.program.filename().string();
      absent_ = error.what();
    }
  }

  // Cases that the description declines are not started. The others are dealt to a few starts, so that all jobs have
  // work to the end and a crash costs little.
  void ScheduleCases(const Truths& truths, Schedule& schedule) {
    constexpr size_t kStartsPerJob = 2;
    constexpr size_t kMinCasesPerStart = 4;  // a start costs about as much as four small cases
    const size_t most = kStartsPerJob * static_cast<size_t>(std::max(options_.jobs, 1));
    std::vector<std::vector<RunTask*>> hands(std::clamp<size_t>(plan_.cases.size() / kMinCasesPerStart, 1, most));
    std::vector<RunTask*> witness, twins;
    size_t dealt = 0;
    declined_.resize(plan_.cases.size());
    trials_.resize(plan_.cases.size());
    for (size_t i = 0; i < plan_.cases.size(); ++i) {
      const PlannedCase& entry = plan_.cases[i];
      const Engine& engine = EngineOf(entry.role);
      if (absent_ && entry.role == Role::kCandidate) continue;
      declined_[i] = Declined(engine.description, entry.spec);
      if (declined_[i]) continue;
      trials_[i] = truths.MakeTrial(entry, engine.description);
      (entry.role == Role::kWitness     ? witness
       : entry.role == Role::kCleanTwin ? twins
                                        : hands[dealt++ % hands.size()])
          .push_back(trials_[i].get());
    }
    for (const auto& hand : hands) schedule.Add(candidate_.program, candidate_.description, hand);
    schedule.Add(witness_.program, witness_.description, witness);
    schedule.Add(switchable_.program, switchable_.description, twins);
  }

  void ScheduleDefects(const Truths& truths, Schedule& schedule) {
    for (DefectRun& defect : defects_) {
      std::vector<RunTask*> tasks;
      for (const PlannedCase& entry : defect_cases_.at(defect.listed.family)) {
        defect.trials.push_back(truths.MakeTrial(entry, switchable_.description));
        tasks.push_back(defect.trials.back().get());
      }
      schedule.Add(defect.program, switchable_.description, tasks, /*keep=*/false, defect.enough);
      for (const auto& trial : defect.trials) defect_of_[trial.get()] = {&defect, trial.get()};
    }
  }

  void RunAll(const Schedule& schedule, std::string_view phase, const RunLimits& limits = RunLimits{}) {
    std::mutex mutex;
    VerifyProgress state;
    state.phase = phase;
    state.total = static_cast<int64_t>(schedule.runs().size());
    const auto start = std::chrono::steady_clock::now();
    const auto on_taken = [&](size_t number, const CaseOutcome& outcome) {
      const ScheduledRun& run = schedule.runs()[number];
      for (const std::filesystem::path& dir : schedule.Unneeded(number)) {
        std::error_code ignored;  // a folder that stays is removed with work_dir
        std::filesystem::remove_all(dir, ignored);
      }
      if (options_.first_kill) StopAtKill(run.task, outcome);
      const std::lock_guard lock(mutex);
      logs_[run.out_dir] = outcome.log;
      seconds_[run.task] += outcome.wall_s;
      ++state.done;
      state.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      state.last = run.spec.id;
      progress_(state);
    };
    RunSchedule(schedule, options_.jobs, options_.work_dir / "engines", stop_, on_taken, limits);
  }

  // Ends the runs of a defect once a check that is expected to catch it has. Where any will do, a run that does not end
  // well is enough.
  void StopAtKill(const RunTask* task, const CaseOutcome& outcome) {
    const auto found = defect_of_.find(task);
    if (found == defect_of_.end()) return;
    const auto& [defect, trial] = found->second;
    const std::vector<std::string>& expected = defect->listed.expected;
    if (expected.empty() && outcome.kind != CaseOutcome::Kind::kOk) defect->enough.request_stop();
    if (!trial->is_judged()) return;
    const reports::DefectRecord seen = JudgeDefect(defect->listed.id, defect->listed.title, {{"", trial->judgement()}});
    const auto catches = [&](const std::string& check) {
      return expected.empty() || std::find(expected.begin(), expected.end(), check) != expected.end();
    };
    if (std::any_of(seen.caught_by.begin(), seen.caught_by.end(), catches)) defect->enough.request_stop();
  }

  // After Ctrl-C a case without a verdict is NOT_RUN, whatever the interruption made of it.
  Judgement JudgeTrial(const Trial& trial) const {
    Judgement judgement = trial.judgement();
    if (stop_.stop_requested() && (judgement.no_truth || judgement.verdict == Verdict::kNotRun)) {
      return {Verdict::kNotRun, {}, "interrupted", std::nullopt, false, false};
    }
    return judgement;
  }

  Judgement JudgementOf(size_t index) const {
    if (trials_[index]) return JudgeTrial(*trials_[index]);
    if (!declined_[index]) return {Verdict::kNotRun, {}, *absent_, std::nullopt, false, false};
    return {Verdict::kUnsupported, {}, *declined_[index], std::nullopt, false, false};
  }

  reports::CaseRecord JudgeCase(size_t index) const {
    const PlannedCase& entry = plan_.cases[index];
    Judgement judgement = JudgementOf(index);
    reports::CaseRecord record;
    record.id = entry.id;
    record.verdict = judgement.verdict;
    record.engine = EngineOf(entry.role).description.name;
    if (entry.role == Role::kCleanTwin) record.engine += " (twin)";
    record.axes.insert(entry.axes.begin(), entry.axes.end());
    record.checks = std::move(judgement.checks);
    record.message = std::move(judgement.message);
    record.reproduce = options_.reproduce_prefix;
    if (!options_.plan.lone)
      record.reproduce += entry.role == Role::kCleanTwin ? " --self-test" : " --case " + entry.id;
    const auto seconds = seconds_.find(trials_[index].get());
    if (seconds != seconds_.end()) record.seconds = seconds->second;
    record.steps = entry.spec.steps;
    record.ranks = entry.spec.config.world_size();
    record.expected_unsupported =
        record.verdict == Verdict::kUnsupported &&
        std::any_of(options_.expected_unsupported.begin(), options_.expected_unsupported.end(),
                    [&](const std::string& pattern) { return fnmatch(pattern.c_str(), entry.id.c_str(), 0) == 0; });
    return record;
  }

  // Runs failed cases alone: shows that the printed line reproduces the failure, or marks the case as flaky. It stays
  // failed.
  void RerunFailures(const Truths& truths, reports::Record& record) {
    Schedule again(source_, options_.work_dir / "again");
    std::map<size_t, std::unique_ptr<Trial>> trials;
    for (size_t i = 0; i < record.cases.size() && trials.size() < kMaxReruns; ++i) {
      const Verdict verdict = record.cases[i].verdict;
      if (verdict != Verdict::kFail && verdict != Verdict::kError) continue;
      const Engine& engine = EngineOf(plan_.cases[i].role);
      trials[i] = truths.MakeTrial(plan_.cases[i], engine.description);
      again.Add(engine.program, engine.description, {trials[i].get()});
    }
    if (trials.empty()) return;
    RunAll(again, "failed cases again");
    for (const auto& [i, trial] : trials) {
      const Judgement second = JudgeTrial(*trial);
      if (second.verdict == Verdict::kNotRun) continue;
      if (second.verdict == Verdict::kPass) {
        record.cases[i].message += " (flaky: it passed when it was run again)";
      } else if (second.message == record.cases[i].message) {
        record.cases[i].message += " (the same when run again)";
      } else {
        record.cases[i].message += " (run again: " + second.message + ")";
      }
    }
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
      subjects.push_back({&plan_.cases[i], JudgeTrial(*trials_[i]), &record.cases[i].shrunk});
    }
    const auto progress = [&](const std::string& id, int64_t tried, double left_s) {
      progress_({"", tried, tried, 0, id, left_s});
    };
    ShrinkFailures({{&reference_, &witness_, &candidate_},
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

  std::vector<DefectFinding> FindingsOf(const DefectRun& defect) const {
    std::vector<DefectFinding> findings;
    const std::vector<PlannedCase>& cases = defect_cases_.at(defect.listed.family);
    for (size_t i = 0; i < cases.size(); ++i) findings.push_back({cases[i].id, JudgeTrial(*defect.trials[i])});
    return findings;
  }

  reports::DefectRecord JudgeDefectRun(const DefectRun& defect) const {
    reports::DefectRecord record = JudgeDefect(defect.listed.id, defect.listed.title, FindingsOf(defect));
    record.expect = defect.listed.expect;
    record.hypothesis = defect.listed.hypothesis;
    return record;
  }

  // First divergence and hypotheses of what failed. Runs the engine again, and the reference on parts of batches.
  void Diagnose(reports::Record& record) {
    DiagnosisPhase phase(source_);
    size_t num_cases = 0;
    for (size_t i = 0; i < record.cases.size() && num_cases < kMaxReruns; ++i) {
      const Verdict verdict = record.cases[i].verdict;
      if ((verdict != Verdict::kFail && verdict != Verdict::kError) || !trials_[i]) continue;
      ++num_cases;
      const Engine& engine = EngineOf(plan_.cases[i].role);
      phase.Add({trials_[i].get(), &plan_.cases[i].spec.model, &engine.program, &engine.description,
                 &record.cases[i].divergence});
    }
    for (size_t i = 0; i < defects_.size() && !options_.listed_defects; ++i) {
      const std::vector<DefectFinding> findings = FindingsOf(defects_[i]);
      const DefectFinding* told = ToldFinding(findings);
      if (!told || !record.defects[i].caught) continue;
      const auto number = static_cast<size_t>(told - findings.data());
      phase.Add({defects_[i].trials[number].get(), &defect_cases_.at(defects_[i].listed.family)[number].spec.model,
                 &defects_[i].program, &switchable_.description, &record.defects[i].divergence});
    }
    Schedule schedule(source_, options_.work_dir / "diagnosis");
    phase.AddRuns(reference_.program, reference_.description, schedule);
    RunAll(schedule, "diagnosis of failed cases");
    phase.Finish();
  }

  reports::Record NewRecord() const {
    reports::Record record;
    record.command = "verify";
    record.created = UtcNow();
    record.seed = options_.plan.seed;
    record.listed = static_cast<int64_t>(plan_.cases.size());
    record.text = {options_.text.filename().string(), static_cast<int64_t>(std::filesystem::file_size(options_.text))};
    record.environment = EnvironmentFingerprint();
    if (!witness_.description.name.empty()) record.environment["libtorch"] = witness_.description.version;
    record.engine = {candidate_.description.name, candidate_.description.version,
                     candidate_.program.program.filename().string()};
    record.shard = {options_.plan.selection.shard_index, options_.plan.selection.shard_count};
    record.options["tier"] = SizesOf(options_.plan.tier).name;
    record.options["jobs"] = std::to_string(options_.jobs);
    if (options_.plan.lone) record.options["case_file"] = options_.plan.lone->id;
    if (options_.plan.selection.filter) record.options["filter"] = *options_.plan.selection.filter;
    if (options_.plan.selection.case_id) record.options["case"] = *options_.plan.selection.case_id;
    record.options["self_test"] = options_.run_defects ? "on" : "off";
    return record;
  }

  // Moves the folders of cases that failed to failures_dir, named after the case; of a case of several runs, one each.
  void SaveFailures(const Schedule& schedule) const {
    std::map<const RunTask*, const PlannedCase*> failed;
    for (size_t i = 0; i < trials_.size(); ++i) {
      if (!trials_[i]) continue;
      const Verdict verdict = JudgementOf(i).verdict;
      if (verdict == Verdict::kFail || verdict == Verdict::kError) failed[trials_[i].get()] = &plan_.cases[i];
    }
    for (const ScheduledRun& run : schedule.runs()) {
      const auto found = failed.find(run.task);
      if (found == failed.end()) continue;
      const std::filesystem::path target = options_.failures_dir / FailureFolder(*found->second, run.spec);
      std::error_code error;
      std::filesystem::create_directories(target, error);
      std::filesystem::copy(run.case_dir, target / "case", std::filesystem::copy_options::recursive, error);
      std::filesystem::rename(run.out_dir, target / "out", error);
      const auto log = logs_.find(run.out_dir);
      if (log != logs_.end() && !log->second.empty()) {
        std::filesystem::copy_file(log->second, target / "engine.log", error);
      }
    }
  }

  const Engine& EngineOf(Role role) const {
    switch (role) {
      case Role::kWitness:
        return witness_;
      case Role::kCleanTwin:
        return switchable_;
      case Role::kCandidate:
        return candidate_;
    }
    return candidate_;
  }

  const VerifyOptions& options_;
  std::stop_token stop_;
  const std::function<void(const VerifyProgress&)>& progress_;
  contract::TokenSource source_;

  Plan plan_;
  std::map<std::string, std::vector<PlannedCase>> defect_cases_;  // by family; empty without defects
  std::vector<DefectRun> defects_;
  Engine reference_, candidate_, witness_, switchable_;

  std::optional<std::string> absent_;                 // why the foreign engine cannot run on this machine
  std::vector<std::optional<std::string>> declined_;  // by case: why it is not started
  std::vector<std::unique_ptr<Trial>> trials_;        // by case; none where it is declined or its engine absent
  std::map<const RunTask*, double> seconds_;
  std::map<const RunTask*, std::pair<DefectRun*, const Trial*>> defect_of_;
  std::map<std::filesystem::path, std::filesystem::path> logs_;  // by out_dir
};

}  // namespace

reports::Record Verify(const VerifyOptions& options, std::stop_token stop,
                       const std::function<void(const VerifyProgress&)>& progress) {
  return Verification(options, std::move(stop), progress).Run();
}

}  // namespace plumbline::conformance
