// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/memory_check.h"

#include <cstdint>
#include <map>
#include <string>

#include "conformance/oracle/memory_formula.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;
using reports::CheckRecord;

using Peaks = std::map<std::string, int64_t>;

std::string Show(const Peaks& peaks, const std::string& category) {
  const auto found = peaks.find(category);
  return found == peaks.end() ? "nothing" : std::to_string(found->second) + " bytes";
}

// "weights 8 bytes, the formula says 16 bytes; ..." for each category that differs; empty if none does.
std::string Differences(const Peaks& reported, const Peaks& expected) {
  Peaks categories = expected;
  categories.insert(reported.begin(), reported.end());
  std::string text;
  for (const auto& [category, bytes] : categories) {
    const std::string seen = Show(reported, category);
    const std::string due = Show(expected, category);
    if (seen != due) text += (text.empty() ? "" : "; ") + category + " " + seen + ", the formula says " + due;
  }
  return text;
}

}  // namespace

CheckRecord CheckMemory(const contract::Case& spec, std::span<const contract::Trace> ranks, bool required) {
  CheckRecord check{"memory", CheckOutcome::kPass, 0, ""};
  const Peaks expected = ExpectedMemoryPeak(spec.model, spec.config);
  const auto fail = [&](std::string detail) {
    check.outcome = CheckOutcome::kFail;
    check.detail = std::move(detail);
    return check;
  };
  int64_t silent_steps = 0;
  for (const contract::Trace& trace : ranks) {
    for (const contract::StepRecord& record : trace.steps) {
      const std::string where = "step " + std::to_string(record.step) + ", rank " + std::to_string(trace.rank) + ": ";
      if (record.memory_peak_bytes.empty()) {
        if (required) return fail(where + "no peaks of memory, though the engine says that it keeps them");
        ++silent_steps;
        continue;
      }
      check.compared += static_cast<int64_t>(expected.size());
      const std::string differences = Differences(record.memory_peak_bytes, expected);
      if (!differences.empty()) return fail(where + differences);
    }
  }
  if (check.compared > 0) return check;
  check.outcome = silent_steps > 0 ? CheckOutcome::kNotApplicable : CheckOutcome::kVacuous;
  if (silent_steps == 0) check.detail = "no step was traced";
  return check;
}

}  // namespace plumbline::conformance
