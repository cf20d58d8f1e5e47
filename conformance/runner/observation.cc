// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/observation.h"

#include "conformance/contract/error.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/ledger_check.h"

namespace plumbline::conformance {

using reports::CheckOutcome;

Observation Observe(const contract::Case& spec, const contract::EngineDescription& description,
                    const std::filesystem::path& out_dir, const CaseOutcome& outcome) {
  Observation seen{outcome, {}, std::nullopt};
  if (outcome.kind != CaseOutcome::Kind::kOk) return seen;
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
  seen.run = std::move(merged.run);
  return seen;
}

}  // namespace plumbline::conformance
