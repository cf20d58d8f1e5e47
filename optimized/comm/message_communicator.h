// SPDX-License-Identifier: Apache-2.0
// A communicator for ranks that exchange messages over a wire. The same bits as threads: each element is summed by one
// rank, in the order of ranks, by the code that sums for threads (collective_math.h).
//
//   all_reduce      every rank sums one part and sends it to all: 2 (size - 1) / size of the buffer per rank
//   reduce_scatter  (size - 1) / size of the input per rank
//   all_gather      (size - 1) / size of the output per rank
//
// These are the bytes of a ring, in two steps instead of size - 1.
//
// Time-outs, mismatches and aborts end all ranks with the reason that each heard first; a rank whose process died is
// named at once. Other than among threads, ranks that wait for each other learn so by the time-out.
#pragma once

#include <memory>

#include "optimized/comm/communicator.h"
#include "optimized/comm/wire.h"

namespace plumbline::optimized {

// Its state, with the wire, lives as long as the communicator or any of its handles. Inputs are copied when a call is
// posted and outputs written by Wait, so that no other thread ever touches the caller's buffers.
std::unique_ptr<Communicator> MakeMessageCommunicator(std::unique_ptr<Wire> wire);

}  // namespace plumbline::optimized
