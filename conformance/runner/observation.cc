// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/observation.h"

#include "conformance/contract/error.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/memory_check.h"

namespace plumbline::conformance {

using reports::CheckOutcome;

namespace {

// "; 31 of 60 steps were traced" for an engine that was stopped or died on the way, or nothing.
std::string HowFar(const contract::Case& spec, const std::filesystem::path& out_dir, CaseOutcome::Kind kind) {
  if (kind != CaseOutcome::Kind::kTimedOut && kind != CaseOutcome::Kind::kCrashed) return "";
  try {
    const size_t traced = contract::ReadTrace(out_dir, 0).steps.size();
    return "; " + std::to_string(traced) + " of " + std::to_string(spec.steps) + " steps were traced";
  } catch (const contract::Error&) {
    return "; no step was traced";
  }
}

}  // namespace

int64_t FirstUntraced(const contract::Case& spec, const std::filesystem::path& out_dir) {
  try {
    const contract::Trace trace = contract::ReadTrace(out_dir, 0);
    return trace.steps.empty() ? spec.first_step : trace.steps.back().step + 1;
  } catch (const contract::Error&) {
    return spec.first_step;
  }
}

Observation Observe(const contract::Case& spec, const contract::EngineDescription& description,
                    const std::filesystem::path& out_dir, const CaseOutcome& outcome, Guard* guard) {
  Observation seen{outcome, {}, std::nullopt};
  if (outcome.kind != CaseOutcome::Kind::kOk) {
    seen.outcome.message += HowFar(spec, out_dir, outcome.kind);
    return seen;
  }
  std::vector<contract::Trace> ranks;
  try {
    for (int64_t rank = 0; rank < spec.config.world_size(); ++rank) {
      ranks.push_back(contract::ReadTrace(out_dir, rank));
    }
  } catch (const contract::Error& error) {
    seen.checks.push_back({"trace", CheckOutcome::kFail, 0, error.what()});
    return seen;
  }
  MergedRun merged = MergeTraces(spec, ranks);
  seen.checks = std::move(merged.checks);
  if (seen.checks.front().outcome != CheckOutcome::kPass) return seen;
  seen.checks.push_back(CheckLedger(spec, ranks, description.Has("ledger")));
  seen.checks.push_back(CheckMemory(spec, ranks, description.Has("memory")));
  seen.run = std::move(merged.run);
  if (guard && FirstFailure(seen).empty()) GuardTraces(spec, ranks, *guard);
  return seen;
}

std::string FirstFailure(const Observation& seen) {
  for (const reports::CheckRecord& check : seen.checks) {
    if (check.outcome == reports::CheckOutcome::kFail) return check.detail;
  }
  return seen.run ? "" : "no trace";
}

}  // namespace plumbline::conformance
