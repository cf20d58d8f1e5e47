// SPDX-License-Identifier: Apache-2.0
// Runs that a diagnosis adds when a case has failed: the engine again, dumping what it holds, and the reference on
// parts of the batch and on batches that an engine may have confused with the right one. They give tensors, never a
// verdict.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/batch_source.h"
#include "conformance/diagnosis/dump.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

// Any runs of one engine, of which some steps' dumps are read.
class DumpTask final : public RunTask {
 public:
  struct Wanted {
    TaskRun run;
    std::vector<int64_t> steps;  // that are read; `run` is told to dump them
  };
  explicit DumpTask(std::vector<Wanted> wanted);

  std::vector<TaskRun> Runs() const override;
  void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) override;

  // Nothing where the run did not end well or left no such dump.
  const Dump* dump(size_t run, int64_t step) const;
  const contract::Case& spec(size_t run) const { return wanted_[run].run.spec; }
  const std::string& error() const { return error_; }  // the first one; empty if all went well

 private:
  std::vector<Wanted> wanted_;
  std::vector<std::vector<std::optional<Dump>>> dumps_;  // [run][step of it]
  std::string error_;
};

// The reference on one step of a run: the truth, the shares of the micro-batches, and confusions.
class ReferenceProbe {
 public:
  // `run`: of the engine, in its layout. `source` is read here and not kept.
  ReferenceProbe(const TaskRun& run, int64_t step, const contract::TokenSource& source);

  RunTask& task() { return *task_; }

  // The truth of a kind; of a tensor that nobody has, empty.
  Values Truth(contract::TensorKind kind, size_t tensor) const;
  // The truth after the step before; nothing in the first.
  std::optional<TensorState> Before(size_t tensor) const;
  std::vector<Values> Shares(size_t tensor) const;  // empty unless every micro-batch was run
  Values Loss() const;                              // one element; none where there is no truth
  std::vector<Values> LossShares() const;           // like Shares
  const std::vector<double>& share_tokens() const { return share_tokens_; }
  std::vector<ChangedGradient> Changed(size_t tensor) const;
  const std::string& error() const { return task_->error(); }

  // Runs with the same key give the same probe.
  static std::string Key(const TaskRun& run, int64_t step);

 private:
  struct ChangedRun {
    std::string hypothesis;
    std::string what;
    size_t run = 0;
    int64_t step = 0;
  };
  void AddMicroBatches(const contract::Batches& batches, const TaskRun& run);
  void AddConfusions(const contract::Batches& batches, const TaskRun& run);
  void Add(TaskRun run, std::vector<int64_t> steps);
  Values WholeOf(size_t run, int64_t step, contract::TensorKind kind, size_t tensor) const;

  bool is_exact_;
  std::vector<contract::ParameterSpec> parameters_;
  int64_t step_;
  std::vector<DumpTask::Wanted> wanted_;
  std::vector<size_t> share_runs_;
  std::vector<double> share_factors_, share_tokens_;
  std::vector<ChangedRun> changed_;
  std::unique_ptr<DumpTask> task_;
};

}  // namespace plumbline::conformance
