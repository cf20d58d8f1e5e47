// SPDX-License-Identifier: Apache-2.0
// What the diagnosis of a failed trial begins with: the first divergence, and in which run it was seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "conformance/oracle/exact_check.h"
#include "conformance/runner/run_task.h"

namespace plumbline::conformance {

struct Lead {
  Divergence divergence;
  std::optional<TaskRun> run = std::nullopt;    // none: nothing can be run again for it
  std::optional<TaskRun> saved = std::nullopt;  // from whose last checkpoint `run` resumes
  std::optional<TaskRun> expected =
      std::nullopt;  // of the same engine, which `run` is to equal; none: the reference is the truth
  double noise = 0;  // distance from the truth that rounding alone explains, of a gradient
};

// The engine itself stopped: there is a step and nothing to compare.
inline Lead LeadOfStop(int64_t first_untraced, const std::string& message) {
  return {{first_untraced, "engine", "", 0, message}};
}

// A run that resumed is not the rest of the whole one. `saving`: whose checkpoint it resumed from.
inline Lead LeadOfResumed(const Divergence& divergence, const TaskRun& resumed, const TaskRun& saving,
                          const TaskRun& whole) {
  return {divergence, resumed, saving, whole};
}

}  // namespace plumbline::conformance
