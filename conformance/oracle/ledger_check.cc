// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/ledger_check.h"

#include <cstdint>
#include <ranges>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::CommCount;
using reports::CheckOutcome;
using reports::CheckRecord;

constexpr int64_t kAlignElems = 32;
constexpr int64_t kScalarBytes = 8;
constexpr int64_t kGradientBytes = 4;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Padded lengths of all buckets.
std::vector<int64_t> PaddedBucketElems(const contract::ModelSpec& model, const contract::RunConfig& config) {
  std::vector<int64_t> padded;
  int64_t open_elems = 0;    // of the parameters alone
  int64_t open_aligned = 0;  // with each parameter at its aligned place
  const auto close = [&] {
    if (open_elems > 0) padded.push_back(RoundUp(open_aligned, kAlignElems * config.data_degree));
    open_elems = open_aligned = 0;
  };
  for (const contract::ParameterSpec& parameter : contract::Parameters(model) | std::views::reverse) {
    if (open_elems + parameter.numel() > config.reduce_bucket_elems) close();
    open_elems += parameter.numel();
    open_aligned += RoundUp(parameter.numel(), kAlignElems);
  }
  close();
  return padded;
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

std::map<std::string, CommCount> Called(std::map<std::string, CommCount> counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == CommCount{}; });
  return counts;
}

}  // namespace

std::map<std::string, CommCount> ExpectedComm(const contract::ModelSpec& model, const contract::RunConfig& config) {
  std::map<std::string, CommCount> expected;
  if (config.data_degree == 1) return expected;
  const auto add = [&](const char* kind, int64_t calls, int64_t bytes) {
    expected[kind].calls += calls;
    expected[kind].bytes += calls * bytes;
  };
  add("all_reduce", 2, kScalarBytes);
  for (int64_t elems : PaddedBucketElems(model, config)) {
    if (config.zero_stage == 0) {
      add("all_reduce", 1, kGradientBytes * elems);
      continue;
    }
    add("reduce_scatter", config.zero_stage == 1 ? 1 : config.accumulation_steps, kGradientBytes * elems);
    add("all_gather", 1, contract::SizeBytes(config.storage) * elems);
  }
  return expected;
}

CheckRecord CheckLedger(const contract::Case& spec, std::span<const contract::Trace> ranks, bool required) {
  CheckRecord check{"ledger", CheckOutcome::kPass, 0, ""};
  const std::map<std::string, CommCount> expected = ExpectedComm(spec.model, spec.config);
  for (const contract::Trace& trace : ranks) {
    for (const contract::StepRecord& record : trace.steps) {
      const std::string where = "step " + std::to_string(record.step) + ", rank " + std::to_string(trace.rank);
      if (!record.comm) {
        if (!required) continue;
        check.outcome = CheckOutcome::kFail;
        check.detail = where + ": no counts, though the engine says that it keeps a ledger";
        return check;
      }
      check.compared += 2 * static_cast<int64_t>(std::max<size_t>(expected.size(), 1));
      const std::map<std::string, CommCount> counted = Called(*record.comm);
      if (counted == expected) continue;
      check.outcome = CheckOutcome::kFail;
      check.detail = where + ": " + Show(counted) + "; the formula says " + Show(expected);
      return check;
    }
  }
  if (check.compared == 0) check.outcome = CheckOutcome::kNotApplicable;
  return check;
}

}  // namespace plumbline::conformance
