// SPDX-License-Identifier: Apache-2.0
// Runs to be made, in one list: which engine runs which case from which folder into which, for which task. Writes the
// case folders. In the folder of a run that resumes, all weights and moments are wrong (other_state.h): it must take
// its own from the checkpoint. After a stop request nothing more is made, and nothing is started.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/contract/case_file.h"
#include "conformance/runner/run_pool.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

struct ScheduledRun {
  RunTask* task = nullptr;
  size_t index = 0;  // of the task's run
  contract::Case spec;
  std::filesystem::path case_dir;
  std::filesystem::path out_dir;
  bool keep = true;             // false: out_dir is of no use once its task and the run that resumes from it had it
  std::optional<size_t> saved;  // the number of the run from whose checkpoint this one resumes
  bool is_resumed = false;      // another run resumes from this one's checkpoint
  bool owns_case_dir = false;   // no other run is given case_dir
};

class Schedule {
 public:
  // After a request to `stop` runs are listed only, without folders: RunSchedule reports them as interrupted.
  Schedule(const contract::TokenSource& source, std::filesystem::path work_dir, std::stop_token stop = {});

  // Adds one start of `engine` for all runs of the tasks, in order, but for those in threads. Tasks, engine and
  // description must outlive it. `enough`: a request ends this start.
  void Add(const EngineProgram& engine, const contract::EngineDescription& description,
           const std::vector<RunTask*>& tasks, bool keep = true,
           std::stop_source enough = std::stop_source(std::nostopstate));

  // And one of `engine` for the runs of these tasks that are in threads; after Add of the same tasks.
  void AddThreads(const EngineProgram& engine, const contract::EngineDescription& description,
                  const std::vector<RunTask*>& tasks);

  const std::vector<ScheduledRun>& runs() const { return runs_; }
  const std::vector<RunUnit>& units() const { return units_; }
  const std::stop_token& stop() const { return stop_; }

  // The folders that nobody reads any more once the task of this run has taken it. One with a checkpoint from which
  // another run resumes is read until that one ends.
  std::vector<std::filesystem::path> Unneeded(size_t number) const;
  // All that the runs of this task were given for themselves, and what they left.
  std::vector<std::filesystem::path> FoldersOf(const RunTask& task) const;

 private:
  void AddTask(RunTask& task, bool in_threads, bool keep, RunUnit& unit);
  // And whether it belongs to this run alone.
  std::pair<std::filesystem::path, bool> CaseDir(const TaskRun& run);
  void MakeCase(const std::filesystem::path& dir, const TaskRun& run);
  const contract::CaseData* PlainData(const contract::Case& plain);

  const contract::TokenSource& source_;
  std::filesystem::path work_dir_;
  std::stop_token stop_;
  std::vector<ScheduledRun> runs_;
  std::vector<RunUnit> units_;
  std::map<const RunTask*, std::vector<size_t>> numbers_by_task_;  // of its runs
  int64_t num_case_dirs_ = 0;
  std::map<std::string, std::filesystem::path> case_dirs_;  // by case.json, of runs that begin at the initial state
  std::map<std::string, contract::CaseData> data_by_problem_;
};

// Runs all of them, until the schedule's stop request; each task takes what its runs left, then `on_taken` is called,
// from the same thread. Otherwise like RunUnits.
void RunSchedule(
    const Schedule& schedule, int jobs, const std::filesystem::path& scratch_dir,
    const std::function<void(size_t number, const CaseOutcome& outcome)>& on_taken = [](size_t, const CaseOutcome&) {},
    const RunLimits& limits = RunLimits{});

}  // namespace plumbline::conformance
