// SPDX-License-Identifier: Apache-2.0
// Wires between ranks of one process, for tests: what is sent is told to the receiver by a thread of its own. A wire
// can be cut, as if its process had died.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "optimized/comm/wire.h"

namespace plumbline::optimized::testing {

// What comes in for one rank.
class Inbox {
 public:
  void Start(WireEvents& events) {
    thread_ = std::jthread([this, &events](std::stop_token stop) { Deliver(stop, events); });
  }

  void Put(int64_t peer, std::shared_ptr<const Message> message) {
    const std::lock_guard lock(mutex_);
    arrived_.push_back({peer, std::move(message)});
    changed_.notify_all();
  }

  // Ends the thread; what is not delivered yet is dropped.
  void Close() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Item {
    int64_t peer = 0;
    std::shared_ptr<const Message> message;  // null: the peer is lost
  };

  void Deliver(const std::stop_token& stop, WireEvents& events) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !arrived_.empty(); })) {
      if (stop.stop_requested()) return;
      const Item item = std::move(arrived_.front());
      arrived_.pop_front();
      lock.unlock();
      if (item.message) {
        events.Received(item.peer, *item.message);
      } else {
        events.Lost(item.peer, "cut");
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Item> arrived_;
  std::jthread thread_;
};

class MemoryWire final : public Wire {
 public:
  MemoryWire(int64_t rank, std::shared_ptr<std::vector<Inbox>> inboxes) : rank_(rank), inboxes_(std::move(inboxes)) {}
  ~MemoryWire() override {
    Cut();
    (*inboxes_)[rank_].Close();
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return static_cast<int64_t>(inboxes_->size()); }
  void Start(WireEvents& events) override { (*inboxes_)[rank_].Start(events); }

  void Send(int64_t peer, std::shared_ptr<const Message> message) override {
    const std::lock_guard lock(mutex_);
    if (!cut_) (*inboxes_)[peer].Put(rank_, std::move(message));
  }

  // Nothing is sent any more, and all others hear of it.
  void Cut() {
    const std::lock_guard lock(mutex_);
    for (int64_t peer = 0; !cut_ && peer < size(); ++peer) {
      if (peer != rank_) (*inboxes_)[peer].Put(rank_, nullptr);
    }
    cut_ = true;
  }

 private:
  const int64_t rank_;
  const std::shared_ptr<std::vector<Inbox>> inboxes_;
  std::mutex mutex_;
  bool cut_ = false;
};

inline std::vector<std::unique_ptr<MemoryWire>> MakeMemoryWires(int64_t size) {
  const auto inboxes = std::make_shared<std::vector<Inbox>>(size);
  std::vector<std::unique_ptr<MemoryWire>> wires;
  for (int64_t rank = 0; rank < size; ++rank) wires.push_back(std::make_unique<MemoryWire>(rank, inboxes));
  return wires;
}

}  // namespace plumbline::optimized::testing
