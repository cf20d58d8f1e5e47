// SPDX-License-Identifier: Apache-2.0
// See ledger.h. A call is booked before it is posted, so that a call that fails is in the books too.
#include "optimized/comm/ledger.h"

#include <chrono>
#include <memory>
#include <utility>

#include "conformance/contract/digest.h"

namespace plumbline::optimized {
namespace {

// As the formats number them.
uint64_t NumberOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 1;
    case CollectiveKind::kReduceScatter:
      return 2;
    default:
      return 3;
  }
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
  Book(CollectiveKind::kAllReduce, buffer);
  return Timed([&] { return inner_->AllReduce(buffer, options); });
}

Handle LedgerCommunicator::ReduceScatter(const Buffer& input, const Buffer& output, const CallOptions& options) {
  Book(CollectiveKind::kReduceScatter, input);
  return Timed([&] { return inner_->ReduceScatter(input, output, options); });
}

Handle LedgerCommunicator::AllGather(const Buffer& input, const Buffer& output, const CallOptions& options) {
  Book(CollectiveKind::kAllGather, output);
  return Timed([&] { return inner_->AllGather(input, output, options); });
}

Handle LedgerCommunicator::Barrier(const CallOptions& options) {
  return Timed([&] { return inner_->Barrier(options); });
}

void LedgerCommunicator::Book(CollectiveKind kind, const Buffer& largest) {
  if (size() == 1) return;
  const auto bytes = static_cast<uint64_t>(largest.size_bytes());
  entry_.sequence = contract::Mix(entry_.sequence + 4 * bytes + NumberOf(kind));
  contract::CommCount& count = entry_.by_kind[std::string(Name(kind))];
  ++count.calls;
  count.bytes += largest.size_bytes();
}

}  // namespace plumbline::optimized
