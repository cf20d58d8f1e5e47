// SPDX-License-Identifier: Apache-2.0
// Something that needs runs of one engine and learns from how they went: a truth, a yardstick, or a trial that ends in
// a verdict. The schedule makes the folders, the pool runs, and each task takes what its own runs left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/engines/run_cases.h"
#include "conformance/oracle/real_start.h"

namespace plumbline::conformance {

struct TaskRun {
  contract::Case spec;
  std::shared_ptr<const RealStart> start = nullptr;  // none: the family's initial state
  std::optional<size_t> resumes = std::nullopt;      // an earlier run of the same task, from its last checkpoint
  // In the place of the text's, of as many steps or more.
  std::shared_ptr<const contract::Batches> batches = nullptr;
  // Of a task for an engine whose ranks are processes: made by the one whose ranks are threads. Resumes nothing.
  bool in_threads = false;
};

class RunTask {
 public:
  virtual ~RunTask() = default;

  // In the order in which one start of the engine runs them; the same list at each call.
  virtual std::vector<TaskRun> Runs() const = 0;

  // Called once for each run, in any order and from any thread, never twice at once for one task. What the run left may
  // be gone later.
  virtual void Take(size_t index, const std::filesystem::path& out_dir, const CaseOutcome& outcome) = 0;
};

}  // namespace plumbline::conformance
