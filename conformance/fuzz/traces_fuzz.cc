// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a case and the traces of its ranks, put together and checked as `verify` and `engine check` do. Findings
// are failures of checks and never exceptions; where the traces fit together, each step has every tensor.
#include "conformance/cases/lone_case.h"
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/fuzz/parts.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/memory_check.h"
#include "conformance/oracle/run_digest.h"

namespace plumbline::contract::fuzz {
namespace {

using conformance::MergedRun;
using reports::CheckOutcome;

constexpr size_t kRanks = 2;

bool Fits(const Case& spec, const std::vector<Trace>& traces) {
  const MergedRun merged = conformance::MergeTraces(spec, traces);
  conformance::CheckLedger(spec, traces, true);
  conformance::CheckMemory(spec, traces, true);
  for (const reports::CheckRecord& check : merged.checks) {
    if (check.outcome == CheckOutcome::kFail) Demand(!check.detail.empty(), "a failure says what was found");
  }
  if (merged.checks.front().outcome != CheckOutcome::kPass) return false;
  const size_t tensors = Parameters(spec.model).size();
  for (const conformance::StepDigest& step : merged.run.steps) {
    for (const auto& kind : step.tensors) Demand(kind.empty() || kind.size() == tensors, "each tensor has a digest");
  }
  return true;
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const std::vector<std::string_view> parts = Parts(Text(data, size), 1 + kRanks);
  const auto spec = ParseOrRefuse([&] { return ParseCase(parts[0], "case"); });
  if (!spec.has_value() || conformance::WhyNotJudgeable(*spec).has_value()) return false;
  std::vector<Trace> traces;
  for (size_t rank = 0; rank < kRanks && static_cast<int64_t>(rank) < spec->config.world_size(); ++rank) {
    const auto trace = ParseOrRefuse([&] { return ParseTrace(parts[1 + rank], "trace"); });
    if (!trace.has_value()) return false;
    traces.push_back(*trace);
  }
  return Fits(*spec, traces);
}

}  // namespace plumbline::contract::fuzz
