// SPDX-License-Identifier: Apache-2.0
// See gloo_communicator.h. The only file of this engine that sees LibTorch: c10d's store, and its Gloo process group of
// which only tagged send and recv are used (message_communicator.h says what ranks tell each other, and why).
//
// A message travels as a frame of fixed size, which holds small ones whole, and where it is larger as a second
// transfer of its own size. Each peer has a thread that receives and one that sees transfers off; both block in Gloo
// without a limit, for Gloo closes all connections of a process when a wait of its own runs out. What bounds our
// waiting is above (Wait's time-out).
#include "optimized/comm/gloo_communicator.h"

#define USE_C10D_GLOO 1
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "conformance/contract/error.h"
#include "optimized/comm/message_communicator.h"
#include "optimized/comm/wire.h"

namespace plumbline::optimized {
namespace {

using contract::ErrorCode;
using Milliseconds = std::chrono::milliseconds;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using GroupPointer = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// Longer than any run: a wait inside Gloo must not run out.
constexpr Milliseconds kForever = std::chrono::hours(24 * 365);

// What a wire that is destroyed gives its peers to take its last messages; one that runs does so at once.
constexpr auto kFlush = std::chrono::seconds(1);

constexpr int kFrameTag = 0;
constexpr int kBodyTag = 1;

// In the place of a size: "I am leaving, have you all that I sent?", and "I have".
constexpr int64_t kLeaving = -1;
constexpr int64_t kTaken = -2;

struct Frame {
  int64_t message_bytes = 0;
  std::array<std::byte, 504> start{};
};

at::Tensor BytesAt(void* data, size_t bytes) {
  return at::from_blob(data, {static_cast<int64_t>(bytes)}, at::TensorOptions(at::kByte));
}

// The first line of what c10d throws, without its stack of C++ frames.
std::string FirstLine(const std::exception& error) {
  std::string text = error.what();
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

// A message on its way. Its memory is Gloo's until the transfers are complete, or gone.
struct Sending {
  std::shared_ptr<const Message> message;  // null: the frame says all
  std::unique_ptr<Frame> frame;
  std::vector<WorkPointer> transfers;
};

// The connection to one peer. A message is handed to Gloo by whoever sends it, and forgotten by a thread that waits for
// such transfers where many have gathered: to wake it for each would cost more than the message.
class Link {
 public:
  Link(GroupPointer group, int64_t peer, WireEvents& events) : group_(std::move(group)), peer_(peer), events_(events) {
    receiver_ = std::thread([this] { ReceiveAll(); });
    reaper_ = std::thread([this] { ReapAll(); });
  }

  void Send(std::shared_ptr<const Message> message) {
    const auto bytes = static_cast<int64_t>(message->size());
    const std::lock_guard lock(mutex_);
    unfinished_bytes_ += message->size();
    SendLocked(bytes, std::move(message));
  }

  // Until the peer has all that was sent, or is lost. A connection that is closed before could take messages with it:
  // an error of the peer's next write closes its end, whatever it has not read yet.
  void Leave(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    SendLocked(kLeaving, nullptr);
    changed_.wait_until(lock, deadline, [&] { return error_ || taken_; });
  }

  // Its threads end. Sending is a no-op from then on, since those of other links may still want to.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
      for (const WorkPointer& work : receivings_) {
        if (work) work->abort();
      }
      for (const Sending& sending : sendings_) {
        for (const WorkPointer& work : sending.transfers) work->abort();
      }
    }
    reaper_.join();
    receiver_.join();
  }

 private:
  // Frames that Gloo may fill before we look: a sender need not ask first.
  static constexpr size_t kWindow = 8;
  static constexpr size_t kMaxUnfinished = 64;
  static constexpr size_t kMaxUnfinishedBytes = size_t{1} << 20;

  void SendLocked(int64_t bytes_or_word, std::shared_ptr<const Message> message) {
    if (stopping_ || error_) return;
    sendings_.push_back({std::move(message), std::make_unique<Frame>(), {}});
    sendings_.back().frame->message_bytes = bytes_or_word;
    try {
      Begin(sendings_.back());
    } catch (const std::exception& error) {
      error_ = FirstLine(error);  // told by the reaper: here a caller may hold what hearing it takes
    }
    if (IsDue()) changed_.notify_all();
  }

  void Begin(Sending& sending) {
    static const Message kNothing;
    const Message& message = sending.message ? *sending.message : kNothing;
    Frame& frame = *sending.frame;
    const bool fits = message.size() <= frame.start.size();
    if (fits && !message.empty()) std::memcpy(frame.start.data(), message.data(), message.size());
    std::vector<at::Tensor> tensors = {BytesAt(&frame, sizeof frame)};
    sending.transfers.push_back(group_->send(tensors, static_cast<int>(peer_), kFrameTag));
    if (fits) return;
    tensors = {BytesAt(const_cast<std::byte*>(message.data()), message.size())};  // Gloo only reads what it sends
    sending.transfers.push_back(group_->send(tensors, static_cast<int>(peer_), kBodyTag));
  }

  bool IsDue() const {
    if (error_) return true;
    return !sendings_.empty() && (sendings_.size() > kMaxUnfinished || unfinished_bytes_ > kMaxUnfinishedBytes);
  }

  void ReapAll() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || IsDue(); });
      if (stopping_) return;
      if (error_) break;
      const std::vector<WorkPointer> transfers = sendings_.front().transfers;
      lock.unlock();
      std::optional<std::string> error = ErrorOfWaiting(transfers);
      lock.lock();
      if (stopping_) return;
      if (error) error_ = std::move(error);
      if (error_) break;
      if (sendings_.front().message) unfinished_bytes_ -= sendings_.front().message->size();
      sendings_.pop_front();
    }
    lock.unlock();
    Lose();
  }

  static std::optional<std::string> ErrorOfWaiting(const std::vector<WorkPointer>& transfers) {
    try {
      for (const WorkPointer& work : transfers) work->wait(kForever);
      return std::nullopt;
    } catch (const std::exception& error) {
      return FirstLine(error);
    }
  }

  WorkPointer BeginToReceive(void* data, size_t bytes, int tag) {
    std::vector<at::Tensor> tensors = {BytesAt(data, bytes)};
    return group_->recv(tensors, static_cast<int>(peer_), tag);
  }

  // Takes the place of what was received there; false if the wire is being destroyed.
  bool Receive(size_t place, void* data, size_t bytes, int tag) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    receivings_[place] = BeginToReceive(data, bytes, tag);
    return true;
  }

  // False if the wire is being destroyed.
  bool Await(size_t place) {
    WorkPointer work;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;  // perhaps before anything was begun there
      work = receivings_[place];
    }
    return work->wait(kForever);
  }

  void ReceiveAll() {
    std::vector<Frame> frames(kWindow);  // these outlive the transfers into them, which end with receivings_
    Message message;
    try {
      const auto receive_frame = [&](size_t i) { return Receive(i, &frames[i], sizeof(Frame), kFrameTag); };
      for (size_t i = 0; i < kWindow; ++i) {
        if (!receive_frame(i)) break;
      }
      for (size_t i = 0; Await(i); i = (i + 1) % kWindow) {
        const Frame frame = frames[i];
        if (!receive_frame(i)) break;
        if (frame.message_bytes < 0) {
          Answer(frame.message_bytes);
          continue;
        }
        message = Message(static_cast<size_t>(frame.message_bytes));
        if (message.size() <= frame.start.size()) {
          std::memcpy(message.data(), frame.start.data(), message.size());
        } else if (!Receive(kWindow, message.data(), message.size(), kBodyTag) || !Await(kWindow)) {
          break;
        }
        events_.Received(peer_, std::move(message));
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = FirstLine(error);
    }
    {
      const std::lock_guard lock(mutex_);
      receivings_.fill(nullptr);
    }
    Lose();
  }

  void Answer(int64_t word) {
    const std::lock_guard lock(mutex_);
    if (word == kLeaving) return SendLocked(kTaken, nullptr);
    taken_ = true;
    changed_.notify_all();
  }

  void Lose() {
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
      if (!error_ || stopping_ || std::exchange(told_, true)) return;
      why = *error_;
    }
    events_.Lost(peer_, why);
  }

  const GroupPointer group_;
  const int64_t peer_;
  WireEvents& events_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sending> sendings_;
  size_t unfinished_bytes_ = 0;
  std::array<WorkPointer, kWindow + 1> receivings_;  // the last is of a message that is too long for a frame
  std::optional<std::string> error_;                 // why the peer is lost
  bool told_ = false;
  bool taken_ = false;
  bool stopping_ = false;
  std::thread receiver_;
  std::thread reaper_;
};

class GlooWire final : public Wire {
 public:
  GlooWire(GroupPointer group, int64_t rank, int64_t size) : group_(std::move(group)), rank_(rank), size_(size) {}

  ~GlooWire() override {
    const auto deadline = std::chrono::steady_clock::now() + kFlush;
    for (const auto& link : links_) {
      if (link) link->Leave(deadline);
    }
    for (const auto& link : links_) {
      if (link) link->Stop();
    }
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }

  void Start(WireEvents& events) override {
    const std::lock_guard lock(mutex_);
    links_.resize(static_cast<size_t>(size_));
    for (int64_t peer = 0; peer < size_; ++peer) {
      if (peer != rank_) links_[peer] = std::make_unique<Link>(group_, peer, events);
    }
  }

  void Send(int64_t peer, std::shared_ptr<const Message> message) override {
    Link* link = nullptr;
    {
      const std::lock_guard lock(mutex_);  // a first message may come, and be answered, while the others are started
      link = links_[peer].get();
    }
    link->Send(std::move(message));
  }

 private:
  const GroupPointer group_;
  const int64_t rank_;
  const int64_t size_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Link>> links_;
};

Milliseconds Rounded(std::chrono::duration<double> timeout) {
  return std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(timeout));
}

std::string Seconds(std::chrono::duration<double> timeout) { return std::to_string(timeout.count()) + " s"; }

[[noreturn]] void FailStore(const std::string& what, const std::exception& error) {
  contract::Fail(ErrorCode::kEnvironment, what + ": " + FirstLine(error));
}

c10::intrusive_ptr<c10d::Store> OpenStore(const ProcessPlace& place, std::chrono::duration<double> timeout) {
  const std::string where = place.address + ":" + std::to_string(place.port);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.hosts_store;
  options.waitWorkers = false;
  options.timeout = Rounded(timeout);
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
    return c10::make_intrusive<c10d::PrefixStore>("plumbline " + std::to_string(place.attempt), store);
  } catch (const std::exception& error) {
    const std::string whose = place.hosts_store ? "rank 0 cannot serve the store at " : "no store at ";
    FailStore(whose + where + (place.hosts_store ? "" : " (rank 0 or its launcher brings it)"), error);
  }
}

class StoreWorld final : public GlooWorld {
 public:
  StoreWorld(const ProcessPlace& place, std::chrono::duration<double> timeout)
      : place_(place), store_(OpenStore(place, timeout)) {
    Gather("world", timeout);
  }

  std::unique_ptr<Communicator> MakeCommunicator(const std::string& name,
                                                 std::chrono::duration<double> timeout) override {
    Gather(name, timeout);
    return MakeMessageCommunicator(std::make_unique<GlooWire>(Connect(name, timeout), place_.rank, place_.size));
  }

  void Decline(const std::string& name, const std::string& reason) override {
    Publish(ReadyKey(name, place_.rank), "rank " + std::to_string(place_.rank) + " failed: " + reason);
  }

  void Publish(const std::string& key, const std::string& text) override {
    Guarded([&] { store_->set(key, text); });
  }

  std::optional<std::string> Read(const std::string& key, std::chrono::duration<double> timeout) override {
    if (!Guarded([&] { return AreThere({key}, timeout); })) return std::nullopt;
    return Guarded([&] { return Text(store_->get(key)); });
  }

  int64_t Count(const std::string& key) override {
    return Guarded([&] { return store_->add(key, 1); });
  }

 private:
  static std::string ReadyKey(const std::string& name, int64_t rank) { return name + "/ready/" + std::to_string(rank); }

  static std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

  template <typename Body>
  auto Guarded(Body body) -> decltype(body()) {
    try {
      return body();
    } catch (const std::exception& error) {
      FailStore("the store of rank 0 is gone", error);
    }
  }

  // Whether all keys are there within the time. A store whose server ended throws when asked again.
  bool AreThere(const std::vector<std::string>& keys, std::chrono::duration<double> timeout) {
    try {
      store_->wait(keys, Rounded(timeout));
      return true;
    } catch (const std::exception&) {
      return store_->check(keys);
    }
  }

  void Gather(const std::string& name, std::chrono::duration<double> timeout) {
    Publish(ReadyKey(name, place_.rank), "ready");
    std::vector<std::string> keys;
    for (int64_t rank = 0; rank < place_.size; ++rank) keys.push_back(ReadyKey(name, rank));
    if (!Guarded([&] { return AreThere(keys, timeout); })) FailMissing(name, keys, timeout);
    for (const std::string& key : keys) {
      const std::string text = Guarded([&] { return Text(store_->get(key)); });
      if (text != "ready") contract::Fail(ErrorCode::kInternal, text);
    }
  }

  [[noreturn]] void FailMissing(const std::string& name, const std::vector<std::string>& keys,
                                std::chrono::duration<double> timeout) {
    std::string missing;
    for (size_t rank = 0; rank < keys.size(); ++rank) {
      if (Guarded([&] { return store_->check({keys[rank]}); })) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    contract::Fail(ErrorCode::kTimeout,
                   "meeting for " + name + " timed out after " + Seconds(timeout) + "; missing ranks: " + missing);
  }

  GroupPointer Connect(const std::string& name, std::chrono::duration<double> timeout) {
    const bool is_one_host = place_.address == "localhost" || place_.address.starts_with("127.");
    const auto options = c10d::ProcessGroupGloo::Options::create(Rounded(timeout));
    options->threads = 1;  // which collectives would use
    options->devices.push_back(is_one_host ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                           : c10d::ProcessGroupGloo::createDefaultDevice());
    const auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    try {
      return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(place_.rank),
                                                         static_cast<int>(place_.size), options);
    } catch (const std::exception& error) {
      FailStore("Gloo cannot connect the ranks for " + name, error);
    }
  }

  const ProcessPlace place_;
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::unique_ptr<GlooWorld> GlooWorld::Join(const ProcessPlace& place, std::chrono::duration<double> timeout) {
  return std::make_unique<StoreWorld>(place, timeout);
}

}  // namespace plumbline::optimized
