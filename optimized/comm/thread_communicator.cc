// SPDX-License-Identifier: Apache-2.0
// See thread_communicator.h. The n-th call of a rank on a stream is matched with the n-th call of the others on that
// stream.
//
// Locking: one mutex guards all bookkeeping. Memory of the ranks is moved outside of it, by the last arriver or the
// group's own thread, while the call is kExecuting (which includes waiting for that thread); whoever wants to leave a
// call (time-out, abort, destroyed handle) waits for the end of kExecuting first, so that no rank's buffers vanish
// under the executor.
#include "optimized/comm/thread_communicator.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"
#include "optimized/comm/collective_math.h"
#include "optimized/comm/posting_communicator.h"

namespace plumbline::optimized {
namespace {

using contract::ErrorCode;

struct Call {
  enum class State { kPending, kExecuting, kDone };

  Call(Signature call_signature, int64_t first, int64_t size)
      : signature(std::move(call_signature)), first_rank(first), inputs(size), outputs(size), arrived(size, false) {}

  Signature signature;
  int64_t first_rank;
  std::vector<Buffer> inputs;
  std::vector<Buffer> outputs;
  std::vector<bool> arrived;
  int64_t num_arrived = 0;
  State state = State::kPending;
};

void Execute(const Call& call) {
  switch (call.signature.kind) {
    case CollectiveKind::kAllReduce:
      return AllReduceMemory(call.inputs);
    case CollectiveKind::kReduceScatter:
      return ReduceScatterMemory(call.inputs, call.outputs);
    case CollectiveKind::kAllGather:
      return AllGatherMemory(call.inputs, call.outputs);
    case CollectiveKind::kBarrier:
      return;
  }
}

class ThreadGroup {
 public:
  ThreadGroup(int64_t size, Progress progress) : size_(size), next_(size), waiting_(size, nullptr) {
    if (progress == Progress::kOwnThread) executor_ = std::jthread([this](std::stop_token stop) { ExecuteAll(stop); });
  }

  int64_t size() const { return size_; }

  std::shared_ptr<Call> Post(int64_t rank, int stream, Signature signature, const Buffer& input, const Buffer& output) {
    std::unique_lock lock(mutex_);
    ThrowIfAborted();
    const std::shared_ptr<Call> call = Join(rank, stream, std::move(signature));
    call->inputs[rank] = input;
    call->outputs[rank] = output;
    call->arrived[rank] = true;
    if (++call->num_arrived == size_) {
      call->state = Call::State::kExecuting;
      if (executor_.joinable()) {
        complete_.push_back(call);
        work_.notify_one();
      } else {
        ExecuteUnlocked(lock, *call);
      }
    }
    return call;
  }

  void Wait(int64_t rank, const Call& call, const CallOptions& options) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<std::chrono::steady_clock::duration>(options.timeout);
    std::unique_lock lock(mutex_);
    const WaitingMark mark(waiting_[static_cast<size_t>(rank)], &call);
    if (!aborted_) AbortIfNobodyCanGoOn();
    changed_.wait_until(lock, deadline, [&] { return call.state == Call::State::kDone || aborted_; });
    WaitWhileExecuting(lock, call);
    if (call.state == Call::State::kDone) return;
    if (!aborted_) {
      AbortLocked(ErrorCode::kTimeout, TimeoutText(call.signature, options, call.arrived));
    }
    ThrowIfAborted();
  }

  // The rank leaves the call; afterwards nobody touches its buffers.
  void Leave(int64_t rank, const Call& call) {
    std::unique_lock lock(mutex_);
    WaitWhileExecuting(lock, call);
    if (call.state == Call::State::kDone || aborted_) return;
    AbortLocked(ErrorCode::kInternal,
                "rank " + std::to_string(rank) + " gave up " + Text(call.signature) + " without waiting for it");
  }

  void Abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    AbortLocked(ErrorCode::kInternal, reason);
  }

 private:
  // A stream's calls that not all ranks have made yet; calls[0] has the number `first`.
  struct Stream {
    int64_t first = 0;
    std::deque<std::shared_ptr<Call>> calls;
  };

  // Set while a rank is inside Wait.
  class WaitingMark {
   public:
    WaitingMark(const Call*& place, const Call* call) : place_(place) { place_ = call; }
    ~WaitingMark() { place_ = nullptr; }
    WaitingMark(const WaitingMark&) = delete;
    WaitingMark& operator=(const WaitingMark&) = delete;

   private:
    const Call*& place_;
  };

  // Each rank is one thread: when all of them wait for calls that some rank has not made, none ever will. Said at once
  // instead of after the time-out, and with what each waits for.
  void AbortIfNobodyCanGoOn() {
    std::string text;
    for (size_t rank = 0; rank < waiting_.size(); ++rank) {
      const Call* call = waiting_[rank];
      if (!call || call->state != Call::State::kPending) return;
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + " for " + Text(call->signature) +
              ", missing ranks: " + MissingRanks(call->arrived);
    }
    AbortLocked(ErrorCode::kInternal, "deadlock: every rank waits: " + text);
  }

  std::shared_ptr<Call> Join(int64_t rank, int stream_id, Signature signature) {
    Stream& stream = streams_[stream_id];
    const int64_t number = next_[rank][stream_id]++;
    const auto place = static_cast<size_t>(number - stream.first);
    if (place == stream.calls.size()) {
      stream.calls.push_back(std::make_shared<Call>(std::move(signature), rank, size_));
    } else if (stream.calls[place]->signature != signature) {
      const Call& other = *stream.calls[place];
      AbortLocked(ErrorCode::kInternal,
                  MismatchText(number, stream_id, {other.first_rank, other.signature}, {rank, signature}));
      ThrowIfAborted();
    }
    const std::shared_ptr<Call> call = stream.calls[place];
    // Each rank posts in order, so the call that the last rank completes is always the oldest.
    if (call->num_arrived + 1 == size_) {
      contract::Check(place == 0, "calls of a stream complete in order");
      stream.calls.pop_front();
      ++stream.first;
    }
    return call;
  }

  void ExecuteUnlocked(std::unique_lock<std::mutex>& lock, Call& call) {
    lock.unlock();
    Execute(call);
    lock.lock();
    call.state = Call::State::kDone;
    changed_.notify_all();
  }

  // Also after an abort: a rank that leaves a call waits until it is no longer kExecuting.
  void ExecuteAll(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (work_.wait(lock, stop, [&] { return !complete_.empty(); })) {
      const std::shared_ptr<Call> call = std::move(complete_.front());
      complete_.pop_front();
      ExecuteUnlocked(lock, *call);
    }
  }

  void WaitWhileExecuting(std::unique_lock<std::mutex>& lock, const Call& call) {
    changed_.wait(lock, [&] { return call.state != Call::State::kExecuting; });
  }

  void AbortLocked(ErrorCode code, const std::string& reason) {
    if (!aborted_) aborted_.emplace(code, reason);
    changed_.notify_all();
  }

  void ThrowIfAborted() const {
    if (aborted_) throw contract::Error(*aborted_);
  }

  const int64_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Stream> streams_;
  std::vector<std::map<int, int64_t>> next_;  // per rank and stream: the number of its next call
  std::vector<const Call*> waiting_;          // per rank: the call inside whose Wait it is, if any
  std::optional<contract::Error> aborted_;
  std::deque<std::shared_ptr<Call>> complete_;  // all ranks have arrived; for the executor
  std::condition_variable_any work_;
  std::jthread executor_;  // last: it uses all of the above, and is joined first
};

class ThreadOperation final : public Handle::Operation {
 public:
  ThreadOperation(std::shared_ptr<ThreadGroup> group, int64_t rank, std::shared_ptr<Call> call, CallOptions options)
      : group_(std::move(group)), rank_(rank), call_(std::move(call)), options_(std::move(options)) {}

  ~ThreadOperation() override { group_->Leave(rank_, *call_); }

  void Wait() override {
    const contract::ScopedRange range(contract::Category::kComm, RangeName(call_->signature.kind));
    group_->Wait(rank_, *call_, options_);
  }

 private:
  std::shared_ptr<ThreadGroup> group_;
  int64_t rank_;
  std::shared_ptr<Call> call_;
  CallOptions options_;
};

class ThreadCommunicator final : public PostingCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int64_t rank) : group_(std::move(group)), rank_(rank) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return group_->size(); }
  void Abort(const std::string& reason) override { group_->Abort(reason); }

 private:
  Handle Post(const Signature& signature, const Buffer& input, const Buffer& output,
              const CallOptions& options) override {
    const std::shared_ptr<Call> call = group_->Post(rank_, options.stream, signature, input, output);
    return Handle(std::make_unique<ThreadOperation>(group_, rank_, call, options));
  }

  std::shared_ptr<ThreadGroup> group_;
  int64_t rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(int64_t size, Progress progress) {
  contract::Check(size >= 1, "a communicator has at least one rank");
  const auto group = std::make_shared<ThreadGroup>(size, progress);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int64_t rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<ThreadCommunicator>(group, rank));
  return ranks;
}

}  // namespace plumbline::optimized
