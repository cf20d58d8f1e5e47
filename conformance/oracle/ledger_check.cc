// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/ledger_check.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "conformance/oracle/gather_formula.h"

namespace plumbline::conformance {
namespace {

using contract::CommCount;
using reports::CheckOutcome;
using reports::CheckRecord;

constexpr int64_t kAlignElems = 32;
constexpr int64_t kScalarBytes = 8;
constexpr int64_t kGradientBytes = 4;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Padded lengths of the buckets of these parameters, in this order.
std::vector<int64_t> PaddedBucketElems(const std::vector<contract::ParameterSpec>& parameters,
                                       const contract::RunConfig& config) {
  std::vector<int64_t> padded;
  int64_t open_elems = 0;    // of the parameters alone
  int64_t open_aligned = 0;  // with each parameter at its aligned place
  const auto close = [&] {
    if (open_elems > 0) padded.push_back(RoundUp(open_aligned, kAlignElems * config.data_degree));
    open_elems = open_aligned = 0;
  };
  for (const contract::ParameterSpec& parameter : parameters) {
    if (open_elems + parameter.numel() > config.reduce_bucket_elems) close();
    open_elems += parameter.numel();
    open_aligned += RoundUp(parameter.numel(), kAlignElems);
  }
  close();
  return padded;
}

using Counts = std::map<std::string, CommCount>;

void Add(Counts& counts, const char* kind, int64_t calls, int64_t bytes) {
  counts[kind].calls += calls;
  counts[kind].bytes += calls * bytes;
}

// Stages 0 to 2: one list of buckets, over all parameters in reverse canonical order.
void AddWholeModel(const contract::ModelSpec& model, const contract::RunConfig& config, Counts& counts) {
  std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  std::reverse(parameters.begin(), parameters.end());
  for (int64_t elems : PaddedBucketElems(parameters, config)) {
    if (config.zero_stage == 0) {
      Add(counts, "all_reduce", 1, kGradientBytes * elems);
      continue;
    }
    Add(counts, "reduce_scatter", config.zero_stage == 1 ? 1 : config.accumulation_steps, kGradientBytes * elems);
    Add(counts, "all_gather", 1, contract::SizeBytes(config.storage) * elems);
  }
}

// Stage 3: each set has buckets of its own.
void AddGatherSets(const contract::ModelSpec& model, const contract::RunConfig& config, Counts& counts) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  for (const GatherSet& set : GatherSets(model.exact(), config)) {
    std::vector<contract::ParameterSpec> members;
    for (size_t index : set.parameters) members.push_back(parameters[index]);
    for (int64_t elems : PaddedBucketElems(members, config)) {
      Add(counts, "reduce_scatter", config.accumulation_steps, kGradientBytes * elems);
      Add(counts, "all_gather", set.gathers_per_step, contract::SizeBytes(config.storage) * elems);
    }
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

std::map<std::string, CommCount> Called(std::map<std::string, CommCount> counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == CommCount{}; });
  return counts;
}

}  // namespace

std::map<std::string, CommCount> ExpectedComm(const contract::ModelSpec& model, const contract::RunConfig& config) {
  Counts expected;
  if (config.data_degree == 1) return expected;
  Add(expected, "all_reduce", 2, kScalarBytes);
  if (config.zero_stage == 3) {
    AddGatherSets(model, config, expected);
  } else {
    AddWholeModel(model, config, expected);
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
