// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/saved_failures.h"

#include <system_error>

namespace plumbline::conformance {

namespace fs = std::filesystem;

void SaveFailures(const Schedule& schedule, const std::map<const RunTask*, const PlannedCase*>& failed,
                  const std::map<fs::path, fs::path>& logs, const fs::path& failures_dir) {
  for (const ScheduledRun& run : schedule.runs()) {
    const auto found = failed.find(run.task);
    if (found == failed.end()) continue;
    const fs::path target = failures_dir / FailureFolder(*found->second, run.spec);
    std::error_code ignored;
    fs::create_directories(target, ignored);
    fs::copy(run.case_dir, target / "case", fs::copy_options::recursive, ignored);
    fs::rename(run.out_dir, target / "out", ignored);
    const auto log = logs.find(run.out_dir);
    if (log != logs.end() && !log->second.empty()) fs::copy_file(log->second, target / "engine.log", ignored);
  }
}

}  // namespace plumbline::conformance
