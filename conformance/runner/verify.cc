// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/verify.h"

#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/error.h"
#include "conformance/defects/switch.h"
#include "conformance/runner/defect_judge.h"
#include "conformance/runner/environment.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/observation.h"
#include "conformance/runner/schedule.h"
#include "conformance/runner/truth.h"

namespace plumbline::conformance {
namespace {

using reports::Verdict;

// Cases that failed are run once more, alone: at most this many, so that a broken engine does not double the time.
constexpr size_t kMaxReruns = 5;

struct Engine {
  EngineProgram program;
  contract::EngineDescription description;
};

// A defect and the engine that carries it.
struct DefectRun {
  std::string id;
  std::string title;
  EngineProgram program;
};

class Verification {
 public:
  Verification(const VerifyOptions& options, std::stop_token stop,
               const std::function<void(const VerifyProgress&)>& progress)
      : options_(options),
        stop_(std::move(stop)),
        progress_(progress),
        source_(contract::ReadTokenSource(options.text)),
        schedule_(source_, options.work_dir) {}

  reports::Record Run() {
    MakeLists();
    DescribeEngines();
    ScheduleTruths();
    ScheduleCases();
    ScheduleDefects();
    RunAll(schedule_);
    ReadTruths();
    reports::Record record = NewRecord();
    for (size_t i = 0; i < plan_.cases.size(); ++i) record.cases.push_back(JudgeCase(i));
    if (!stop_.stop_requested()) RerunFailures(record);
    for (size_t i = 0; i < defects_.size(); ++i) record.defects.push_back(JudgeDefectRun(i));
    record.interrupted = stop_.stop_requested();
    reports::Finish(record, options_.require);
    SaveFailures();
    return record;
  }

 private:
  void MakeLists() {
    plan_ = MakePlan(options_.plan);
    if (!options_.run_cases) plan_.cases.clear();
    if (!options_.run_defects) return;
    defect_cases_ = DefectCases(options_.plan);
    AddCleanTwin();
    int64_t index = 0;
    for (const defects::Defect& defect : defects::Defects()) {
      const bool smoke =
          std::find(std::begin(kSmokeDefects), std::end(kSmokeDefects), defect.id) != std::end(kSmokeDefects);
      if (!smoke && !options_.all_defects) continue;
      const Selection& selection = options_.plan.selection;
      if (index++ % selection.shard_count != selection.shard_index - 1) continue;
      const std::string id(defect.id);
      defects_.push_back({id, std::string(defect.title), {options_.engines.optimized_defects, {"--defect", id}}});
    }
  }

  // The switchable copy with every defect off must pass like the product, or what it shows about defects means nothing.
  void AddCleanTwin() {
    const Selection& selection = options_.plan.selection;
    int64_t index = 0;
    for (PlannedCase twin : defect_cases_) {
      if (index++ % selection.shard_count != selection.shard_index - 1) continue;
      twin.role = Role::kCleanTwin;
      twin.id = "clean-twin/" + twin.id;
      plan_.cases.push_back(std::move(twin));
    }
  }

  void DescribeEngines() {
    const auto describe = [this](EngineProgram program) {
      return Engine{program, Describe(program, options_.plan.timeout_s)};
    };
    reference_ = describe({options_.engines.reference, {}});
    candidate_ =
        describe(options_.foreign_engine ? *options_.foreign_engine : EngineProgram{options_.engines.optimized, {}});
    const bool witness = std::any_of(plan_.cases.begin(), plan_.cases.end(),
                                     [](const PlannedCase& entry) { return entry.role == Role::kWitness; });
    if (witness) witness_ = describe({options_.engines.torch_eager, {}});
    if (options_.run_defects) switchable_ = describe({options_.engines.optimized_defects, {}});
  }

  void ScheduleTruths() {
    std::vector<int> problems = plan_.Problems();
    for (const PlannedCase& entry : defect_cases_) problems.push_back(entry.problem);
    for (int problem : problems) {
      const auto [entry, fresh] = truth_runs_.try_emplace(problem);
      if (!fresh) continue;
      entry->second = TruthRuns(ExactProblem(problem), options_.plan);
      std::vector<ScheduledRun> runs;
      for (size_t i = 0; i < entry->second.size(); ++i) {
        runs.push_back({RunPurpose::kTruth, static_cast<size_t>(problem), i, entry->second[i].spec, {}, {}, nullptr});
      }
      schedule_.Add(reference_.program, reference_.description, std::move(runs));
    }
  }

  // Cases that the description declines are not started. The others are dealt to a few starts, so that all jobs have
  // work to the end and a crash costs little.
  void ScheduleCases() {
    constexpr size_t kStartsPerJob = 2;
    constexpr size_t kMinCasesPerStart = 4;  // a start costs about as much as four small cases
    const size_t most = kStartsPerJob * static_cast<size_t>(std::max(options_.jobs, 1));
    std::vector<std::vector<ScheduledRun>> hands(std::clamp<size_t>(plan_.cases.size() / kMinCasesPerStart, 1, most));
    std::vector<ScheduledRun> witness_runs;
    std::vector<ScheduledRun> twin_runs;
    size_t dealt = 0;
    observations_.resize(plan_.cases.size());
    for (size_t i = 0; i < plan_.cases.size(); ++i) {
      const PlannedCase& entry = plan_.cases[i];
      const Engine& engine = EngineOf(entry.role);
      if (const auto reason = Declined(engine.description, entry.spec)) {
        observations_[i].outcome = {CaseOutcome::Kind::kUnsupported, *reason, 0, {}};
        continue;
      }
      ScheduledRun run{RunPurpose::kCase, i, 0, entry.spec, {}, {}, nullptr};
      (entry.role == Role::kWitness     ? witness_runs
       : entry.role == Role::kCleanTwin ? twin_runs
                                        : hands[dealt++ % hands.size()])
          .push_back(std::move(run));
    }
    for (auto& hand : hands) schedule_.Add(candidate_.program, candidate_.description, std::move(hand));
    schedule_.Add(witness_.program, witness_.description, std::move(witness_runs));
    schedule_.Add(switchable_.program, switchable_.description, std::move(twin_runs));
  }

  void ScheduleDefects() {
    defect_observations_.assign(defects_.size(), std::vector<Observation>(defect_cases_.size()));
    for (size_t i = 0; i < defects_.size(); ++i) {
      std::vector<ScheduledRun> runs;
      for (size_t j = 0; j < defect_cases_.size(); ++j) {
        runs.push_back({RunPurpose::kDefect, i, j, defect_cases_[j].spec, {}, {}, nullptr});
      }
      schedule_.Add(defects_[i].program, switchable_.description, std::move(runs));
    }
  }

  void RunAll(const Schedule& schedule) {
    std::mutex mutex;
    VerifyProgress state;
    state.total = static_cast<int64_t>(schedule.runs().size());
    const auto start = std::chrono::steady_clock::now();
    RunUnits(schedule.units(), options_.jobs, options_.work_dir / "engines", stop_,
             [&](size_t number, const CaseOutcome& outcome) {
               const ScheduledRun& run = schedule.runs()[number];
               Store(run, outcome);
               const std::lock_guard lock(mutex);
               ++state.done;
               state.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
               state.last = run.spec.id;
               progress_(state);
             });
  }

  // Each run has a place of its own, so threads do not meet here, except for truths.
  void Store(const ScheduledRun& run, const CaseOutcome& outcome) {
    switch (run.purpose) {
      case RunPurpose::kTruth: {
        const std::lock_guard lock(truth_mutex_);
        if (outcome.kind != CaseOutcome::Kind::kOk) {
          truth_errors_.try_emplace(static_cast<int>(run.owner),
                                    run.spec.id + ": " + std::string(Name(outcome.kind)) + " " + outcome.message);
        }
        truth_dirs_[{static_cast<int>(run.owner), run.index}] = run.out_dir;
        return;
      }
      case RunPurpose::kCase:
        observations_[run.owner] = Observe(run.spec, *run.description, run.out_dir, outcome);
        return;
      case RunPurpose::kDefect:
        defect_observations_[run.owner][run.index] = Observe(run.spec, *run.description, run.out_dir, outcome);
        std::error_code ignored;  // traces of defects are of no use later; a folder that stays is removed with work_dir
        std::filesystem::remove_all(run.out_dir, ignored);
    }
  }

  void ReadTruths() {
    for (const auto& [problem, runs] : truth_runs_) {
      std::vector<std::filesystem::path> dirs;
      for (size_t i = 0; i < runs.size(); ++i) dirs.push_back(truth_dirs_[{problem, i}]);
      const auto error = truth_errors_.find(problem);
      truths_[problem] = ReadTruth(
          runs, dirs, error == truth_errors_.end() ? std::nullopt : std::optional<std::string>(error->second));
    }
  }

  // After Ctrl-C a case without a verdict is NOT_RUN, whatever the interruption made of it.
  Judgement JudgeSeen(const contract::Case& spec, int problem, const Observation& seen) const {
    const Truth& truth = truths_.at(problem);
    if (stop_.stop_requested() && (!truth.error.empty() || seen.outcome.kind == CaseOutcome::Kind::kInterrupted)) {
      return {Verdict::kNotRun, {}, "interrupted", std::nullopt};
    }
    return Judge(spec, truth, seen);
  }

  reports::CaseRecord JudgeCase(size_t index) const {
    const PlannedCase& entry = plan_.cases[index];
    const Observation& seen = observations_[index];
    Judgement judgement = JudgeSeen(entry.spec, entry.problem, seen);
    reports::CaseRecord record;
    record.id = entry.id;
    record.verdict = judgement.verdict;
    record.engine = EngineOf(entry.role).description.name;
    if (entry.role == Role::kCleanTwin) record.engine += " (twin)";
    record.axes.insert(entry.axes.begin(), entry.axes.end());
    record.checks = std::move(judgement.checks);
    record.message = std::move(judgement.message);
    record.reproduce =
        options_.reproduce_prefix + (entry.role == Role::kCleanTwin ? " --self-test" : " --case " + entry.id);
    record.seconds = seen.outcome.wall_s;
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
  void RerunFailures(reports::Record& record) {
    Schedule again(source_, options_.work_dir / "again");
    std::vector<size_t> chosen;
    for (size_t i = 0; i < record.cases.size() && chosen.size() < kMaxReruns; ++i) {
      const Verdict verdict = record.cases[i].verdict;
      if (verdict == Verdict::kFail || verdict == Verdict::kError) chosen.push_back(i);
    }
    if (chosen.empty()) return;
    const std::vector<Observation> first = observations_;
    for (size_t i : chosen) {
      const PlannedCase& entry = plan_.cases[i];
      const Engine& engine = EngineOf(entry.role);
      again.Add(engine.program, engine.description, {{RunPurpose::kCase, i, 0, entry.spec, {}, {}, nullptr}});
    }
    RunAll(again);
    for (size_t i : chosen) {
      const Judgement second = JudgeSeen(plan_.cases[i].spec, plan_.cases[i].problem, observations_[i]);
      if (second.verdict == Verdict::kNotRun) continue;
      if (second.verdict == Verdict::kPass) {
        record.cases[i].message += " (flaky: it passed when it was run again)";
      } else if (second.message == record.cases[i].message) {
        record.cases[i].message += " (the same when run again)";
      } else {
        record.cases[i].message += " (run again: " + second.message + ")";
      }
    }
    observations_ = first;
  }

  reports::DefectRecord JudgeDefectRun(size_t index) const {
    std::vector<DefectFinding> findings;
    for (size_t i = 0; i < defect_cases_.size(); ++i) {
      const PlannedCase& entry = defect_cases_[i];
      findings.push_back({entry.id, JudgeSeen(entry.spec, entry.problem, defect_observations_[index][i])});
    }
    return JudgeDefect(defects_[index].id, defects_[index].title, findings);
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
    record.options["jobs"] = std::to_string(options_.jobs);
    if (options_.plan.selection.filter) record.options["filter"] = *options_.plan.selection.filter;
    if (options_.plan.selection.case_id) record.options["case"] = *options_.plan.selection.case_id;
    record.options["self_test"] = options_.run_defects ? "on" : "off";
    return record;
  }

  // Moves the folders of cases that failed to failures_dir, named after the case.
  void SaveFailures() {
    for (const ScheduledRun& run : schedule_.runs()) {
      if (run.purpose != RunPurpose::kCase) continue;
      const Verdict verdict = JudgeSeen(run.spec, plan_.cases[run.owner].problem, observations_[run.owner]).verdict;
      if (verdict != Verdict::kFail && verdict != Verdict::kError) continue;
      std::string name = run.spec.id;
      std::replace(name.begin(), name.end(), '/', '.');
      const std::filesystem::path target = options_.failures_dir / name;
      std::error_code error;
      std::filesystem::create_directories(target, error);
      std::filesystem::rename(run.case_dir, target / "case", error);
      std::filesystem::rename(run.out_dir, target / "out", error);
      const std::filesystem::path& log = observations_[run.owner].outcome.log;
      if (!log.empty()) std::filesystem::copy_file(log, target / "engine.log", error);
    }
  }

  const Problem& ExactProblem(int index) const { return plan_.list.problems[static_cast<size_t>(index)]; }
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
  Schedule schedule_;

  Plan plan_;
  std::vector<PlannedCase> defect_cases_;
  std::vector<DefectRun> defects_;
  Engine reference_, candidate_, witness_, switchable_;

  std::map<int, std::vector<TruthRun>> truth_runs_;  // by problem
  std::mutex truth_mutex_;
  std::map<std::pair<int, size_t>, std::filesystem::path> truth_dirs_;
  std::map<int, std::string> truth_errors_;
  std::map<int, Truth> truths_;
  std::vector<Observation> observations_;                      // by case
  std::vector<std::vector<Observation>> defect_observations_;  // by defect and its case
};

}  // namespace

reports::Record Verify(const VerifyOptions& options, std::stop_token stop,
                       const std::function<void(const VerifyProgress&)>& progress) {
  return Verification(options, std::move(stop), progress).Run();
}

}  // namespace plumbline::conformance
