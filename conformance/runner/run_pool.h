// SPDX-License-Identifier: Apache-2.0
// Runs lists of cases with several engines on a few threads. Knows nothing of verdicts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <vector>

#include "conformance/contract/engine_protocol.h"
#include "conformance/engines/engine_program.h"
#include "conformance/engines/run_cases.h"

namespace plumbline::conformance {

// One start of one engine for a list of cases.
struct RunUnit {
  const EngineProgram* engine = nullptr;
  const contract::EngineDescription* description = nullptr;
  std::vector<CaseRun> runs;
  std::vector<size_t> numbers;  // what on_done is called with, one per run
  // A request ends this unit alone: its remaining cases are reported as interrupted.
  std::stop_source enough = std::stop_source(std::nostopstate);
};

// Each unit in turn on one of `jobs` threads; on_done is called from those threads, once per case, never twice for a
// number. The first exception of a unit stops the others and is thrown after all threads have ended. After a stop
// request the remaining cases are reported as interrupted. An engine's last breath may take as long as a case.
void RunUnits(const std::vector<RunUnit>& units, int jobs, const std::filesystem::path& scratch_dir,
              std::stop_token stop, const std::function<void(size_t number, const CaseOutcome& outcome)>& on_done,
              const RunLimits& limits = RunLimits{});

}  // namespace plumbline::conformance
