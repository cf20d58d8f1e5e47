// SPDX-License-Identifier: Apache-2.0
// This process's place among the ranks, as torchrun, srun scripts and `plumbline run` state it: the variables that
// torch.distributed reads too. Only main() knows the environment; here it is a function.
#pragma once

#include <functional>

#include "optimized/comm/gloo_communicator.h"

namespace plumbline::optimized {

// The value of a variable, or null.
using Variables = std::function<const char*(const char* name)>;

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; LOCAL_RANK is checked where it is set, and nothing depends on it yet.
// Under torchrun the store is its agent's (TORCHELASTIC_USE_AGENT_STORE) and outlives a restart of the ranks
// (TORCHELASTIC_RESTART_COUNT). InvalidArgument naming the variable, its value and what is allowed.
ProcessPlace PlaceOf(const Variables& variables);

}  // namespace plumbline::optimized
