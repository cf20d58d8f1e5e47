// SPDX-License-Identifier: Apache-2.0
// See message_communicator.h. A call goes through three stages on each rank:
//
//   gathering   every rank announces the call; elements are sent only when all have, so a rank that leaves before that
//               leaves nobody with half of a result
//   moving      parts go to the ranks that sum or gather them; results of an all_reduce go to all
//   done        Wait copies what this rank keeps into the caller's buffer
//
// Locking: one mutex guards all bookkeeping; sums are made outside of it, in memory that belongs to the call, by the
// thread that brought the last part. The wire may be called with the mutex held, since sending never waits.
#include "optimized/comm/message_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/instrumentation.h"
#include "optimized/comm/collective_math.h"
#include "optimized/comm/message_format.h"
#include "optimized/comm/posting_communicator.h"

namespace plumbline::optimized {
namespace {

using contract::ErrorCode;
using SharedMessage = std::shared_ptr<const Message>;

struct Call {
  Call(int call_stream, int64_t call_number, int64_t size)
      : stream(call_stream), number(call_number), announced(size, false), parts(size), results(size) {}

  const int stream;
  const int64_t number;
  std::optional<RankCall> first;  // of the ranks that announced it
  std::vector<bool> announced;
  std::vector<SharedMessage> outgoing;  // one for each rank, while gathering
  std::vector<Message> parts;           // per rank that sent one, this rank's own among them
  std::vector<SharedMessage> results;
  bool moving = false;
  bool executing = false;
  bool executed = false;
  bool done = false;
};

bool MovesElements(CollectiveKind kind) { return kind != CollectiveKind::kBarrier; }

// Elements [Begin(r), Begin(r + 1)) of an all_reduce are summed by rank r; of a reduce_scatter, kept by it.
int64_t Begin(int64_t elems, int64_t rank, int64_t size) { return elems * rank / size; }

MessageHead HeadFor(MessageType type, const Call& call, const Signature& signature) {
  return {.type = type,
          .stream = call.stream,
          .number = call.number,
          .kind = signature.kind,
          .dtype = signature.dtype,
          .input_elems = signature.input_elems};
}

// What each rank is to get of this rank's input; this is the only place that reads it.
std::vector<SharedMessage> PartsOf(const Buffer& input, const Call& call, const Signature& signature, int64_t size) {
  std::vector<SharedMessage> parts(static_cast<size_t>(size));
  const MessageHead head = HeadFor(MessageType::kPart, call, signature);
  if (signature.kind == CollectiveKind::kAllGather) {
    std::ranges::fill(parts, std::make_shared<const Message>(MakeMessage(head, input.data, input.size_bytes())));
  } else if (MovesElements(signature.kind)) {
    const int64_t elem_bytes = contract::SizeBytes(input.dtype);
    const auto* data = static_cast<const std::byte*>(input.data);
    for (int64_t rank = 0; rank < size; ++rank) {
      const int64_t begin = Begin(input.elems, rank, size) * elem_bytes;
      const int64_t end = Begin(input.elems, rank + 1, size) * elem_bytes;
      parts[rank] = std::make_shared<const Message>(MakeMessage(head, data + begin, end - begin));
    }
  }
  return parts;
}

// The sum of all parts, as a message to the other ranks.
SharedMessage SumOfParts(std::vector<Message>& parts, int64_t own_rank, const MessageHead& head) {
  std::vector<Buffer> buffers;
  for (Message& part : parts) {
    buffers.push_back({BodyOf(part), BodyBytes(part) / contract::SizeBytes(head.dtype), head.dtype});
  }
  AllReduceMemory(buffers);  // every part becomes the sum
  Message sum = std::move(parts[own_rank]);
  std::memcpy(sum.data(), &head, sizeof head);
  return std::make_shared<const Message>(std::move(sum));
}

class MessageGroup final : public WireEvents {
 public:
  explicit MessageGroup(std::unique_ptr<Wire> wire)
      : rank_(wire->rank()), size_(wire->size()), lost_(size_), wire_(std::move(wire)) {
    wire_->Start(*this);
  }

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }

  std::shared_ptr<Call> Post(const Signature& signature, int stream, const Buffer& input) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Call> call = CallOf(stream, next_[stream]++);
    lock.unlock();
    std::vector<SharedMessage> outgoing = PartsOf(input, *call, signature, size_);
    lock.lock();
    AbortIfLost(signature);
    ThrowIfAborted();
    call->outgoing = std::move(outgoing);
    Announce(rank_, *call, signature);
    ThrowIfAborted();
    const MessageHead head = HeadFor(MessageType::kAnnounce, *call, signature);
    SendToOthers(std::make_shared<const Message>(
        MakeMessage(head, signature.tag.data(), static_cast<int64_t>(signature.tag.size()))));
    Advance(lock, call);
    return call;
  }

  void Wait(Call& call, const Buffer& output, const CallOptions& options) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<std::chrono::steady_clock::duration>(options.timeout);
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return call.done || aborted_; });
    changed_.wait(lock, [&] { return call.done || aborted_ || !call.executing; });
    if (!call.done && !aborted_) {
      AbortLocked(ErrorCode::kTimeout, TimeoutText(call.first->signature, options, Arrived(call)));
    }
    if (!call.done) ThrowIfAborted();
    lock.unlock();
    CopyOut(call, output);
  }

  // The rank leaves the call. What it sent of a call that all had announced belongs to the call and goes on.
  void Leave(const Call& call) {
    const std::lock_guard lock(mutex_);
    if (call.moving || call.done || aborted_) return;
    AbortLocked(ErrorCode::kInternal, "rank " + std::to_string(rank_) + " gave up " + Text(call.first->signature) +
                                          " without waiting for it");
  }

  void Abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    AbortLocked(ErrorCode::kInternal, reason);
  }

  void Received(int64_t peer, Message message) override {
    const MessageHead head = HeadOf(message);
    std::unique_lock lock(mutex_);
    if (aborted_) return;
    if (head.type == MessageType::kAbort) return AbortLocked(head.code, TextOf(message));
    const std::shared_ptr<Call> call = CallOf(head.stream, head.number);
    switch (head.type) {
      case MessageType::kAnnounce:
        Announce(peer, *call, {head.kind, head.dtype, head.input_elems, TextOf(message)});
        break;
      case MessageType::kPart:
        call->parts[peer] = std::move(message);
        break;
      default:
        call->results[peer] = std::make_shared<const Message>(std::move(message));
    }
    Advance(lock, call);
  }

  // A peer that ended after its last call is lost too; it is missed only where a call needs it.
  void Lost(int64_t peer, const std::string& why) override {
    const std::lock_guard lock(mutex_);
    lost_[peer] = why;
    for (const auto& [place, call] : calls_) {
      if (call->announced[rank_] && !HasArrived(*call, peer)) return AbortIfLost(call->first->signature);
    }
  }

 private:
  std::shared_ptr<Call> CallOf(int stream, int64_t number) {
    std::shared_ptr<Call>& call = calls_[{stream, number}];
    if (!call) call = std::make_shared<Call>(stream, number, size_);
    return call;
  }

  void Announce(int64_t rank, Call& call, Signature signature) {
    if (!call.first) {
      call.first = RankCall{rank, std::move(signature)};
    } else if (call.first->signature != signature) {
      return AbortLocked(ErrorCode::kInternal,
                         MismatchText(call.number, call.stream, *call.first, {rank, std::move(signature)}));
    }
    call.announced[rank] = true;
  }

  // Brings a call as far as it can go now. Releases the lock while it sums.
  void Advance(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Call>& call) {
    if (aborted_ || call->done || call->executing) return;
    if (!call->moving) {
      if (!std::ranges::all_of(call->announced, std::identity())) return;
      SendParts(*call);
    }
    if (!call->executed) {
      if (!HaveAll(*call, [&](int64_t rank) { return HasPart(*call, rank); })) return;
      Execute(lock, *call);
    }
    if (!HaveAll(*call, [&](int64_t rank) { return HasResult(*call, rank); })) return;
    call->done = true;
    calls_.erase({call->stream, call->number});
    changed_.notify_all();
  }

  void SendParts(Call& call) {
    call.moving = true;
    if (MovesElements(call.first->signature.kind)) {
      for (int64_t rank = 0; rank < size_; ++rank) {
        if (rank != rank_) wire_->Send(rank, call.outgoing[rank]);
      }
      call.parts[rank_] = *call.outgoing[rank_];
    }
    call.outgoing.clear();
  }

  void Execute(std::unique_lock<std::mutex>& lock, Call& call) {
    const CollectiveKind kind = call.first->signature.kind;
    if (kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter) {
      call.executing = true;
      lock.unlock();
      const MessageHead head = HeadFor(MessageType::kResult, call, call.first->signature);
      SharedMessage sum = SumOfParts(call.parts, rank_, head);
      lock.lock();
      call.executing = false;
      if (kind == CollectiveKind::kAllReduce && !aborted_) SendToOthers(sum);
      call.results[rank_] = std::move(sum);
      changed_.notify_all();
    }
    call.executed = true;
  }

  template <typename Has>
  bool HaveAll(const Call&, Has has) const {
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (!has(rank)) return false;
    }
    return true;
  }

  static bool HasPart(const Call& call, int64_t rank) {
    return call.executed || !MovesElements(call.first->signature.kind) || !call.parts[rank].empty();
  }

  bool HasResult(const Call& call, int64_t rank) const {
    switch (call.first->signature.kind) {
      case CollectiveKind::kAllReduce:
        return call.results[rank] != nullptr;
      case CollectiveKind::kReduceScatter:
        return rank != rank_ || call.results[rank] != nullptr;
      default:
        return true;
    }
  }

  // Whether nothing of that rank is missing here. This rank's own sum is not something to wait for.
  bool HasArrived(const Call& call, int64_t rank) const {
    return rank == rank_ || (call.announced[rank] && HasPart(call, rank) && HasResult(call, rank));
  }

  // By rank, for the words of a time-out: who has not made the call, or else whose elements are not here.
  std::vector<bool> Arrived(const Call& call) const {
    if (!call.moving) return call.announced;
    std::vector<bool> arrived;
    for (int64_t rank = 0; rank < size_; ++rank) arrived.push_back(HasArrived(call, rank));
    return arrived;
  }

  void CopyOut(const Call& call, const Buffer& output) const {
    auto* target = static_cast<std::byte*>(output.data);
    const auto append = [&](const Message& message) {
      const int64_t bytes = BodyBytes(message);
      if (bytes > 0) std::memcpy(target, BodyOf(message), static_cast<size_t>(bytes));
      target += bytes;
    };
    switch (call.first->signature.kind) {
      case CollectiveKind::kAllReduce:
        for (const SharedMessage& result : call.results) append(*result);
        return;
      case CollectiveKind::kReduceScatter:
        return append(*call.results[rank_]);
      case CollectiveKind::kAllGather:
        for (const Message& part : call.parts) append(part);
        return;
      case CollectiveKind::kBarrier:
        return;
    }
  }

  void SendToOthers(const SharedMessage& message) {
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (rank != rank_) wire_->Send(rank, message);
    }
  }

  // Any call that this rank has not announced yet needs every other rank.
  void AbortIfLost(const Signature& signature) {
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (!lost_[rank]) continue;
      return AbortLocked(ErrorCode::kInternal, "rank " + std::to_string(rank) + " is gone (" + *lost_[rank] + "); " +
                                                   Text(signature) + " needs it");
    }
  }

  // Every rank passes the reason on before it ends, or the end of one could be heard before the reason of another.
  void AbortLocked(ErrorCode code, const std::string& reason) {
    if (aborted_) return;
    aborted_.emplace(code, reason);
    const MessageHead head{.type = MessageType::kAbort, .code = code};
    SendToOthers(
        std::make_shared<const Message>(MakeMessage(head, reason.data(), static_cast<int64_t>(reason.size()))));
    changed_.notify_all();
  }

  void ThrowIfAborted() const {
    if (aborted_) throw contract::Error(*aborted_);
  }

  const int64_t rank_;
  const int64_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int64_t> next_;                                     // per stream: the number of this rank's next call
  std::map<std::pair<int, int64_t>, std::shared_ptr<Call>> calls_;  // by stream and number: announced by any, not done
  std::vector<std::optional<std::string>> lost_;                    // per rank: why
  std::optional<contract::Error> aborted_;
  std::unique_ptr<Wire> wire_;  // last: its threads use all of the above, and end first
};

class MessageOperation final : public Handle::Operation {
 public:
  MessageOperation(std::shared_ptr<MessageGroup> group, std::shared_ptr<Call> call, const Buffer& output,
                   CallOptions options)
      : group_(std::move(group)), call_(std::move(call)), output_(output), options_(std::move(options)) {}

  ~MessageOperation() override { group_->Leave(*call_); }

  void Wait() override {
    const contract::ScopedRange range(contract::Category::kComm, RangeName(call_->first->signature.kind));
    group_->Wait(*call_, output_, options_);
  }

 private:
  std::shared_ptr<MessageGroup> group_;
  std::shared_ptr<Call> call_;
  Buffer output_;
  CallOptions options_;
};

class MessageCommunicator final : public PostingCommunicator {
 public:
  explicit MessageCommunicator(std::unique_ptr<Wire> wire) : group_(std::make_shared<MessageGroup>(std::move(wire))) {}

  int64_t rank() const override { return group_->rank(); }
  int64_t size() const override { return group_->size(); }
  void Abort(const std::string& reason) override { group_->Abort(reason); }

 private:
  Handle Post(const Signature& signature, const Buffer& input, const Buffer& output,
              const CallOptions& options) override {
    std::shared_ptr<Call> call = group_->Post(signature, options.stream, input);
    return Handle(std::make_unique<MessageOperation>(group_, std::move(call), output, options));
  }

  std::shared_ptr<MessageGroup> group_;
};

}  // namespace

std::unique_ptr<Communicator> MakeMessageCommunicator(std::unique_ptr<Wire> wire) {
  return std::make_unique<MessageCommunicator>(std::move(wire));
}

}  // namespace plumbline::optimized
