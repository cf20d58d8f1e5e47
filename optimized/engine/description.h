// SPDX-License-Identifier: Apache-2.0
// What this engine says of itself, whatever its ranks are.
#pragma once

#include "conformance/contract/engine_protocol.h"

namespace plumbline::optimized {

// Ranks are threads of one process ("self"), or processes that somebody else starts ("per_rank").
enum class RanksAre { kThreads, kProcesses };

contract::EngineDescription Description(RanksAre ranks);

}  // namespace plumbline::optimized
