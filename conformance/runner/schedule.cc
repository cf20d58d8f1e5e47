// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/schedule.h"

#include <cstdio>
#include <mutex>
#include <tuple>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/runner/loss_scalers.h"
#include "conformance/runner/other_state.h"

namespace plumbline::conformance {
namespace {

void MakeDir(const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    contract::Fail(contract::ErrorCode::kEnvironment, dir.string() + ": cannot be made: " + error.message());
  }
}

// OUT_DIR/checkpoint-SSSSSS of the last save (docs/zero3.md). It does not exist yet: the run that writes it comes
// earlier in the list of the same start.
void LinkCheckpoint(const std::filesystem::path& case_dir, const ScheduledRun& saved) {
  contract::Check(!saved.spec.save_steps.empty(), "a run that is resumed from saves");
  char name[32];
  std::snprintf(name, sizeof name, "checkpoint-%06lld", static_cast<long long>(saved.spec.save_steps.back()));
  std::error_code error;
  std::filesystem::create_directory_symlink(std::filesystem::absolute(saved.out_dir / name), case_dir / "checkpoint",
                                            error);
  if (error) {
    contract::Fail(contract::ErrorCode::kEnvironment, case_dir.string() + ": cannot be linked: " + error.message());
  }
}

// What weights, state and batches depend on; a layout is not among it.
contract::Case PlainCase(const contract::Case& spec) {
  contract::Case plain;
  plain.model = spec.model;
  plain.seed = spec.seed;
  plain.first_step = spec.first_step;
  plain.steps = spec.steps;
  plain.config.train_batch_size = spec.config.train_batch_size;
  plain.config.micro_batch_size = spec.config.train_batch_size;
  plain.config.optimizer = spec.config.optimizer;
  plain.config.params = spec.config.params;
  return plain;
}

contract::Batches FirstSteps(contract::Batches batches, int64_t steps) {
  if (steps >= batches.steps) return batches;
  batches.steps = steps;
  const auto rows = static_cast<size_t>(steps * batches.batch);
  for (std::vector<int32_t>* values : {&batches.tokens, &batches.labels, &batches.loss_weights}) {
    values->resize(rows * static_cast<size_t>(batches.positions));
  }
  if (!batches.lengths.empty()) batches.lengths.resize(rows);
  return batches;
}

// Nothing after a stop request.
std::optional<contract::CaseData> MakeData(const contract::TokenSource& source, const contract::Case& plain,
                                           const std::stop_token& stop) {
  auto batches = contract::MakeBatches(
      source, plain.model, {plain.seed, plain.first_step, plain.steps, plain.config.train_batch_size}, stop);
  if (!batches) return std::nullopt;
  contract::CaseData data;
  data.batches = *std::move(batches);
  data.spec = plain;
  data.parameters = contract::Parameters(plain.model);
  if (plain.model.is_exact()) {
    data.state = contract::MakeInitialState(plain.model.exact(), plain.config.optimizer, plain.seed);
  } else {
    data.real_state = contract::MakeInitialRealState(plain.model, plain.config, plain.seed);
  }
  return data;
}

}  // namespace

Schedule::Schedule(const contract::TokenSource& source, std::filesystem::path work_dir, std::stop_token stop)
    : source_(source), work_dir_(std::move(work_dir)), stop_(std::move(stop)) {}

void Schedule::Add(const EngineProgram& engine, const contract::EngineDescription& description,
                   const std::vector<RunTask*>& tasks, bool keep, std::stop_source enough) {
  RunUnit unit{&engine, &description, {}, {}, std::move(enough)};
  for (RunTask* task : tasks) AddTask(*task, /*in_threads=*/false, keep, unit);
  if (!unit.runs.empty()) units_.push_back(std::move(unit));
}

void Schedule::AddThreads(const EngineProgram& engine, const contract::EngineDescription& description,
                          const std::vector<RunTask*>& tasks) {
  RunUnit unit{&engine, &description, {}, {}, std::stop_source(std::nostopstate)};
  for (RunTask* task : tasks) AddTask(*task, /*in_threads=*/true, /*keep=*/true, unit);
  if (!unit.runs.empty()) units_.push_back(std::move(unit));
}

std::vector<std::filesystem::path> Schedule::Unneeded(size_t number) const {
  const ScheduledRun& run = runs_.at(number);
  std::vector<std::filesystem::path> dirs;
  if (run.keep) return dirs;
  if (run.owns_case_dir) dirs.push_back(run.case_dir);
  if (!run.is_resumed) dirs.push_back(run.out_dir);
  if (run.saved) dirs.push_back(runs_[*run.saved].out_dir);
  return dirs;
}

std::vector<std::filesystem::path> Schedule::FoldersOf(const RunTask& task) const {
  std::vector<std::filesystem::path> dirs;
  const auto numbers = numbers_by_task_.find(&task);
  if (numbers == numbers_by_task_.end()) return dirs;
  for (size_t number : numbers->second) {
    const ScheduledRun& run = runs_[number];
    if (run.owns_case_dir) dirs.push_back(run.case_dir);
    dirs.push_back(run.out_dir);
  }
  return dirs;
}

void Schedule::AddTask(RunTask& task, bool in_threads, bool keep, RunUnit& unit) {
  const std::vector<TaskRun> wanted = task.Runs();
  std::vector<size_t> numbers(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].in_threads != in_threads) continue;
    numbers[i] = runs_.size();
    ScheduledRun run;
    run.task = &task;
    run.index = i;
    run.spec = wanted[i].spec;
    std::tie(run.case_dir, run.owns_case_dir) = CaseDir(wanted[i]);
    run.out_dir = work_dir_ / "runs" / std::to_string(runs_.size());
    run.keep = keep;
    if (wanted[i].resumes) {
      run.saved = numbers[*wanted[i].resumes];
      if (!stop_.stop_requested()) LinkCheckpoint(run.case_dir, runs_[*run.saved]);
      runs_[*run.saved].is_resumed = true;
    }
    unit.runs.push_back({run.case_dir, run.out_dir, run.spec.timeout_s, run.spec.config.world_size()});
    unit.numbers.push_back(runs_.size());
    numbers_by_task_[&task].push_back(runs_.size());
    runs_.push_back(std::move(run));
  }
}

std::pair<std::filesystem::path, bool> Schedule::CaseDir(const TaskRun& run) {
  const auto fresh_dir = [&] {
    const std::filesystem::path dir = work_dir_ / "cases" / std::to_string(num_case_dirs_++);
    if (!stop_.stop_requested()) MakeCase(dir, run);
    return dir;
  };
  // A folder that says where else to begin belongs to its run alone.
  if (run.start || run.resumes || run.batches) return {fresh_dir(), true};
  const auto [entry, fresh] = case_dirs_.try_emplace(contract::ToJson(run.spec));
  if (fresh) entry->second = fresh_dir();
  return {entry->second, false};
}

void Schedule::MakeCase(const std::filesystem::path& dir, const TaskRun& run) {
  MakeDir(dir);
  const contract::CaseData* plain = PlainData(PlainCase(run.spec));
  if (!plain) return;
  contract::CaseData data = *plain;
  data.spec = run.spec;
  data.loss_scaler = FirstLossScaler(run.spec.config.dynamic_loss_scale);
  if (run.start) {
    data.real_state = run.start->state;
    data.num_updates = run.start->num_updates;
    data.norm_history = run.start->norm_history;
    data.loss_scaler = run.start->loss_scaler.value_or(data.loss_scaler);
  }
  if (run.resumes) ReplaceState(data);
  if (run.batches) data.batches = FirstSteps(*run.batches, run.spec.steps);
  contract::WriteCase(dir, data);
}

// None after a stop request.
const contract::CaseData* Schedule::PlainData(const contract::Case& plain) {
  const std::string key = contract::ToJson(plain);
  if (const auto known = data_by_problem_.find(key); known != data_by_problem_.end()) return &known->second;
  std::optional<contract::CaseData> data = MakeData(source_, plain, stop_);
  return data ? &data_by_problem_.emplace(key, *std::move(data)).first->second : nullptr;
}

void RunSchedule(const Schedule& schedule, int jobs, const std::filesystem::path& scratch_dir,
                 const std::function<void(size_t number, const CaseOutcome& outcome)>& on_taken,
                 const RunLimits& limits) {
  std::map<const RunTask*, std::mutex> mutexes;  // of tasks whose runs are of two starts
  for (const ScheduledRun& run : schedule.runs()) mutexes[run.task];
  const auto on_done = [&](size_t number, const CaseOutcome& outcome) {
    const ScheduledRun& run = schedule.runs()[number];
    const std::lock_guard lock(mutexes.at(run.task));
    run.task->Take(run.index, run.out_dir, outcome);
    on_taken(number, outcome);
  };
  RunUnits(schedule.units(), jobs, scratch_dir, schedule.stop(), on_done, limits);
}

}  // namespace plumbline::conformance
