// SPDX-License-Identifier: Apache-2.0
// What was seen of one run of one case: how the engine ended, and its traces, checked and put together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/engine_protocol.h"
#include "conformance/engines/run_cases.h"
#include "conformance/oracle/guard.h"
#include "conformance/oracle/run_digest.h"
#include "reports/record/record.h"

namespace plumbline::conformance {

struct Observation {
  CaseOutcome outcome;
  // trace, replicas, collectives, ledger, memory; empty unless the engine ended well
  std::vector<reports::CheckRecord> checks;
  std::optional<RunDigest> run;  // present if the trace check passed
};

// The first step of the case that rank 0 did not trace: where an engine that did not end well stopped.
int64_t FirstUntraced(const contract::Case& spec, const std::filesystem::path& out_dir);

// Reads what the engine left in out_dir. Of an engine that did not end well the message says how far its trace goes. A
// malformed trace is a failure of the check "trace", never an exception. With a guard, and where nothing failed, it is
// also shown that the checks of the traces notice planted changes.
Observation Observe(const contract::Case& spec, const contract::EngineDescription& description,
                    const std::filesystem::path& out_dir, const CaseOutcome& outcome, Guard* guard = nullptr);

// What a check found wrong with the traces, or nothing.
std::string FirstFailure(const Observation& seen);

}  // namespace plumbline::conformance
