// SPDX-License-Identifier: Apache-2.0
// Messages between ranks that share no memory: what a communicator of processes needs of the network, and no more.
// Between two ranks messages arrive complete and in the order in which they were sent. Implementations: Gloo
// (gloo_communicator.h), and one within a process for tests (testing/memory_wire.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plumbline::optimized {

using Message = std::vector<std::byte>;  // not empty; its memory is aligned for any number

// What a wire tells, from threads of its own: of one peer one thing at a time, in order.
class WireEvents {
 public:
  virtual ~WireEvents() = default;
  virtual void Received(int64_t peer, Message message) = 0;
  // Nothing comes from this peer any more: its process ended, or the connection broke. `why` is half a line.
  virtual void Lost(int64_t peer, const std::string& why) = 0;
};

class Wire {
 public:
  // Tries for a bounded time to hand over what was sent. No event comes afterwards.
  virtual ~Wire() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Once, before anything is sent. `events` outlives the wire.
  virtual void Start(WireEvents& events) = 0;

  // Never waits, for whatever the peer does. A message to a peer that is lost is dropped.
  virtual void Send(int64_t peer, std::shared_ptr<const Message> message) = 0;
};

}  // namespace plumbline::optimized
