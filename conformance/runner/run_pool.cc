// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/run_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace plumbline::conformance {

void RunUnits(const std::vector<RunUnit>& units, int jobs, const std::filesystem::path& scratch_dir,
              std::stop_token stop, const std::function<void(size_t number, const CaseOutcome& outcome)>& on_done,
              const RunLimits& common_limits) {
  std::stop_source own_stop;
  const std::stop_callback forward(stop, [&] { own_stop.request_stop(); });
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr first_error;

  const auto work = [&] {
    for (size_t i = next++; i < units.size(); i = next++) {
      const RunUnit& unit = units[i];
      try {
        // On a busy machine an engine's last breath takes as long as a case may.
        RunLimits limits = common_limits;
        for (const CaseRun& run : unit.runs) limits.exit_allowance_s = std::max(limits.exit_allowance_s, run.timeout_s);
        std::stop_source unit_stop;
        const auto stop_unit = [&] { unit_stop.request_stop(); };
        const std::stop_callback all(own_stop.get_token(), stop_unit);
        const std::stop_callback enough(unit.enough.get_token(), stop_unit);
        RunCases(
            *unit.engine, *unit.description, unit.runs, scratch_dir / ("unit" + std::to_string(i)),
            unit_stop.get_token(),
            [&](size_t index, const CaseOutcome& outcome) { on_done(unit.numbers[index], outcome); }, limits);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
        own_stop.request_stop();
      }
    }
  };
  std::vector<std::jthread> threads;
  const auto count = std::min<size_t>(static_cast<size_t>(std::max(jobs, 1)), units.size());
  for (size_t i = 0; i < count; ++i) threads.emplace_back(work);
  threads.clear();  // joins
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace plumbline::conformance
