// SPDX-License-Identifier: Apache-2.0
// What a collective does to memory, once all ranks' buffers are visible to one thread: deterministic, sums in the order
// of ranks. No synchronisation here.
#pragma once

#include <vector>

#include "optimized/comm/communicator.h"

namespace plumbline::optimized {

// Each function takes one buffer per rank, in the order of ranks, all of one type and fitting sizes. Sums are made in
// the order 0, 1, ..., in float for F32 and BF16 (rounded once at the end) and in double for F64.
void AllReduceMemory(const std::vector<Buffer>& buffers);
void ReduceScatterMemory(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs);
void AllGatherMemory(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs);

}  // namespace plumbline::optimized
