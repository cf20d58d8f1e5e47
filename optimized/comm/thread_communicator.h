// SPDX-License-Identifier: Apache-2.0
// Communicators for ranks that are threads of one process. Results do not depend on timing: sums are made in the order
// of ranks. Nobody waits when posting.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

enum class Progress {
  kLastArriver,  // the last rank to post a call executes it there and then
  kOwnThread,    // a thread of the group executes calls in the order in which they become complete, while ranks compute
};

// One communicator per rank, in the order of ranks; each is used by one thread at a time (Abort by any). They share
// their state, which lives as long as the last of them or of their handles.
std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(int64_t size, Progress progress);

}  // namespace plumbline::optimized
