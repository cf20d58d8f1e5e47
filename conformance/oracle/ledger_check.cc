// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/ledger_check.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "conformance/contract/dtype.h"
#include "conformance/oracle/bucket_formula.h"
#include "conformance/oracle/call_sequence.h"
#include "conformance/oracle/gather_formula.h"
#include "conformance/oracle/norm_reductions.h"

namespace plumbline::conformance {
namespace {

using contract::CommCount;
using reports::CheckOutcome;
using reports::CheckRecord;

constexpr int64_t kScalarBytes = 8;
constexpr int64_t kGradientBytes = 4;

using Counts = std::map<std::string, CommCount>;

void Add(Counts& counts, const char* kind, int64_t calls, int64_t bytes) {
  counts[kind].calls += calls;
  counts[kind].bytes += calls * bytes;
}

// A set of buckets: how often each of them is reduced and gathered.
void Add(Counts& counts, const contract::ModelSpec& model, const contract::RunConfig& config, const GatherSet& set) {
  for (int64_t elems : PaddedBucketElems(model, config, set.parameters)) {
    const int64_t reductions = set.stage >= 2 ? config.accumulation_steps : 1;
    Add(counts, set.stage == 0 ? "all_reduce" : "reduce_scatter", reductions, kGradientBytes * elems);
    if (set.gathers_per_step == 0) continue;
    Add(counts, "all_gather", set.gathers_per_step, contract::SizeBytes(config.storage) * elems);
  }
}

std::string Show(const std::map<std::string, CommCount>& counts) {
  if (counts.empty()) return "no collective";
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(count.calls) + " x, " +
            std::to_string(count.bytes) + " bytes";
  }
  return text;
}

std::string Hex(uint64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

std::map<std::string, CommCount> Called(std::map<std::string, CommCount> counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == CommCount{}; });
  return counts;
}

// Whether the rank reports times of waiting, and all are 0: a call that another rank takes part in takes some time.
// Of a few steps it may be less than the microsecond in which it is told.
bool NeverWaits(const contract::Trace& trace) {
  constexpr size_t kMinSteps = 8;
  return trace.steps.size() >= kMinSteps &&
         std::any_of(trace.steps.begin(), trace.steps.end(), [](const auto& step) { return step.comm_wait_us; }) &&
         std::none_of(trace.steps.begin(), trace.steps.end(),
                      [](const auto& step) { return step.comm_wait_us.value_or(0) > 0; });
}

}  // namespace

std::map<std::string, CommCount> ExpectedComm(const contract::ModelSpec& model, const contract::RunConfig& config) {
  Counts expected;
  if (config.data_degree == 1) return expected;
  Add(expected, "all_reduce", 2, kScalarBytes);
  for (int64_t bytes : NormReductions(model, config)) Add(expected, "all_reduce", 1, bytes);
  const GatherPlan plan = PlanGathers(model, config);
  for (const GatherSet& group : plan.groups) Add(expected, model, config, group);
  for (const GatherSet& set : plan.resident) Add(expected, model, config, set);
  return expected;
}

CheckRecord CheckLedger(const contract::Case& spec, std::span<const contract::Trace> ranks, bool required) {
  CheckRecord check{"ledger", CheckOutcome::kPass, 0, ""};
  const std::map<std::string, CommCount> expected = ExpectedComm(spec.model, spec.config);
  const uint64_t expected_sequence = SequenceOf(ExpectedCalls(spec.model, spec.config));
  for (const contract::Trace& trace : ranks) {
    for (const contract::StepRecord& record : trace.steps) {
      const std::string where = "step " + std::to_string(record.step) + ", rank " + std::to_string(trace.rank);
      if (!record.comm) {
        if (!required) continue;
        check.outcome = CheckOutcome::kFail;
        check.detail = where + ": no counts, though the engine says that it keeps a ledger";
        return check;
      }
      check.compared += 2 * static_cast<int64_t>(std::max<size_t>(expected.size(), 1)) + 1;
      const std::map<std::string, CommCount> counted = Called(*record.comm);
      if (counted != expected) {
        check.outcome = CheckOutcome::kFail;
        check.detail = where + ": " + Show(counted) + "; the formula says " + Show(expected);
        return check;
      }
      if (record.comm_sequence == expected_sequence) continue;
      check.outcome = CheckOutcome::kFail;
      check.detail = where + ": the right number of calls and bytes, but comm_sequence is " +
                     Hex(record.comm_sequence) + "; the order of calls gives " + Hex(expected_sequence);
      return check;
    }
    if (expected.empty() || !NeverWaits(trace)) continue;
    check.outcome = CheckOutcome::kFail;
    check.detail =
        "rank " + std::to_string(trace.rank) + ": comm_wait_us is 0 in every step, though each has " + Show(expected);
    return check;
  }
  if (check.compared == 0) check.outcome = CheckOutcome::kNotApplicable;
  return check;
}

}  // namespace plumbline::conformance
