// SPDX-License-Identifier: Apache-2.0
// See ledger.h. A call is booked before it is posted, so that a call that fails is in the books too.
#include "optimized/comm/ledger.h"

#include <chrono>
#include <memory>
#include <utility>

#include "conformance/contract/digest.h"

namespace plumbline::optimized {
namespace {

uint64_t Chain(uint64_t digest, uint64_t value) { return contract::Mix(contract::Mix(digest) + value + 1); }

uint64_t Chain(uint64_t digest, const std::string& text) {
  for (const char letter : text) digest = Chain(digest, static_cast<unsigned char>(letter));
  return Chain(digest, text.size());
}

class TimeAdder {
 public:
  explicit TimeAdder(double& sum_us) : sum_us_(sum_us) {}
  ~TimeAdder() {
    sum_us_ += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_).count();
  }
  TimeAdder(const TimeAdder&) = delete;
  TimeAdder& operator=(const TimeAdder&) = delete;

 private:
  double& sum_us_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class TimedOperation final : public Handle::Operation {
 public:
  TimedOperation(Handle inner, std::shared_ptr<double> wait_us)
      : inner_(std::move(inner)), wait_us_(std::move(wait_us)) {}

  void Wait() override {
    const TimeAdder adder(*wait_us_);
    inner_.Wait();
  }

 private:
  Handle inner_;
  const std::shared_ptr<double> wait_us_;
};

}  // namespace

LedgerEntry LedgerCommunicator::Take() {
  LedgerEntry entry = std::exchange(entry_, LedgerEntry{});
  entry.wait_us = std::exchange(*wait_us_, 0);
  return entry;
}

template <typename Post>
Handle LedgerCommunicator::Timed(Post post) {
  const TimeAdder adder(*wait_us_);
  return Handle(std::make_unique<TimedOperation>(post(), wait_us_));
}

Handle LedgerCommunicator::AllReduce(const Buffer& buffer, const CallOptions& options) {
  Book(CollectiveKind::kAllReduce, buffer, options.tag);
  return Timed([&] { return inner_->AllReduce(buffer, options); });
}

Handle LedgerCommunicator::ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) {
  Book(CollectiveKind::kReduceScatter, input, options.tag);
  return Timed([&] { return inner_->ReduceScatter(input, output, options); });
}

Handle LedgerCommunicator::AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) {
  Book(CollectiveKind::kAllGather, output, options.tag);
  return Timed([&] { return inner_->AllGather(input, output, options); });
}

Handle LedgerCommunicator::Barrier(const CallOptions& options) {
  Book(CollectiveKind::kBarrier, Buffer{}, options.tag);
  return Timed([&] { return inner_->Barrier(options); });
}

void LedgerCommunicator::Book(CollectiveKind kind, const Buffer& largest, const std::string& tag) {
  if (size() == 1) return;
  entry_.sequence = Chain(entry_.sequence, static_cast<uint64_t>(kind));
  entry_.sequence = Chain(entry_.sequence, static_cast<uint64_t>(largest.dtype));
  entry_.sequence = Chain(entry_.sequence, static_cast<uint64_t>(largest.elems));
  entry_.sequence = Chain(entry_.sequence, tag);
  if (kind == CollectiveKind::kBarrier) return;
  contract::CommCount& count = entry_.by_kind[std::string(Name(kind))];
  ++count.calls;
  count.bytes += largest.size_bytes();
}

}  // namespace plumbline::optimized
