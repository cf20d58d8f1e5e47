// SPDX-License-Identifier: Apache-2.0
// Communicators for ranks that are threads of one process. Results do not depend on timing: sums are made in the order
// of ranks. Nobody waits when posting, and there are no helper threads: the last rank to arrive executes the call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

// One communicator per rank, in the order of ranks; each is used by one thread at a time (Abort by any). They share
// their state, which lives as long as the last of them or of their handles.
std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(int64_t size);

}  // namespace plumbline::optimized
