// SPDX-License-Identifier: Apache-2.0
// Two communicators that are late, for tests. Neither changes results, the order of calls, or errors.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "optimized/comm/communicator.h"

namespace plumbline::optimized::testing {

// Passes every call on through `wrap`, which makes a handle from the posting of the inner call.
class WrappingCommunicator : public Communicator {
 public:
  using Post = std::function<Handle()>;

  explicit WrappingCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int64_t rank() const override { return inner_->rank(); }
  int64_t size() const override { return inner_->size(); }
  Handle AllReduce(const Buffer& buffer, const CallOptions& options) override {
    return Wrap([this, buffer, options] { return inner_->AllReduce(buffer, options); });
  }
  Handle ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) override {
    return Wrap([this, input, output, options] { return inner_->ReduceScatter(input, output, options); });
  }
  Handle AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) override {
    return Wrap([this, input, output, options] { return inner_->AllGather(input, output, options); });
  }
  Handle Barrier(const CallOptions& options) override {
    return Wrap([this, options] { return inner_->Barrier(options); });
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 protected:
  virtual Handle Wrap(Post post) = 0;

 private:
  std::unique_ptr<Communicator> inner_;
};

// A call is done no earlier than `delay` after it was posted, like one over a slow link. Waiting for it costs no
// processor time.
class DelayedCommunicator final : public WrappingCommunicator {
 public:
  DelayedCommunicator(std::unique_ptr<Communicator> inner, std::chrono::microseconds delay)
      : WrappingCommunicator(std::move(inner)), delay_(delay) {}

 private:
  class Operation final : public Handle::Operation {
   public:
    Operation(Handle inner, std::chrono::steady_clock::time_point done) : inner_(std::move(inner)), done_(done) {}
    void Wait() override {
      inner_.Wait();
      std::this_thread::sleep_until(done_);
    }

   private:
    Handle inner_;
    const std::chrono::steady_clock::time_point done_;
  };

  Handle Wrap(Post post) override {
    const auto done = std::chrono::steady_clock::now() + delay_;
    return Handle(std::make_unique<Operation>(post(), done));
  }

  const std::chrono::microseconds delay_;
};

// Nothing happens before Wait: inputs are read and outputs written there. Who touches a buffer between the two, which
// seldom shows with a fast communicator, always gets it wrong with this one. All ranks must wait in the same order.
class LazyCommunicator final : public WrappingCommunicator {
 public:
  using WrappingCommunicator::WrappingCommunicator;

 private:
  class Operation final : public Handle::Operation {
   public:
    explicit Operation(Post post) : post_(std::move(post)) {}
    void Wait() override { post_().Wait(); }

   private:
    const Post post_;
  };

  Handle Wrap(Post post) override { return Handle(std::make_unique<Operation>(std::move(post))); }
};

}  // namespace plumbline::optimized::testing
