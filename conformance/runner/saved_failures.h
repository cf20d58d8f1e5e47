// SPDX-License-Identifier: Apache-2.0
// What is kept of cases that failed: the folder that the engine was given, what it left, and what it printed.
#pragma once

#include <filesystem>
#include <map>

#include "conformance/runner/plan.h"
#include "conformance/runner/schedule.h"

namespace plumbline::conformance {

// Moves them to failures_dir/FailureFolder of each run: of a case of several runs, one folder each. `failed`: by the
// task that made the runs. `logs`: by out_dir; a run without one has none. What cannot be moved stays behind: the
// verdict must not be lost over it.
void SaveFailures(const Schedule& schedule, const std::map<const RunTask*, const PlannedCase*>& failed,
                  const std::map<std::filesystem::path, std::filesystem::path>& logs,
                  const std::filesystem::path& failures_dir);

}  // namespace plumbline::conformance
