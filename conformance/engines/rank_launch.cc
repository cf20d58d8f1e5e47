// SPDX-License-Identifier: Apache-2.0
// See rank_launch.h.
#include "conformance/engines/rank_launch.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/engines/child_output.h"
#include "conformance/engines/child_process.h"
#include "conformance/engines/engine_environment.h"
#include "conformance/engines/monotonic.h"
#include "conformance/engines/start_mark.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

// A stop request is looked for this often.
constexpr double kTickSeconds = 0.05;
constexpr double kVanishSeconds = 20;  // after SIGKILL: a process can be stuck in a device driver

// A rank that prints without ever ending a line costs no more memory than this.
constexpr size_t kMaxLineBytes = size_t{1} << 20;

using Sink = std::function<void(int64_t, std::string_view)>;

// One stream of one rank, cut into lines.
class Stream {
 public:
  Stream(int64_t rank, const Sink& sink) : rank_(rank), sink_(sink), pipe_(MakePipe()) {}

  int for_child() const { return pipe_.write.get(); }
  int fd() const { return pipe_.read.get(); }  // -1 when closed
  void ChildStarted() { pipe_.write.Reset(); }

  void Drain() {
    if (!pipe_.read) return;
    const bool open = DrainPipe(pipe_.read.get(), [&](std::string_view text) { Add(text); });
    if (!open) Close();
  }

  void Close() {
    pipe_.read.Reset();
    if (!rest_.empty()) sink_(rank_, rest_ + "\n");
    rest_.clear();
  }

 private:
  void Add(std::string_view text) {
    rest_ += text;
    size_t begin = 0;
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      sink_(rank_, std::string_view(rest_).substr(begin, end + 1 - begin));
      begin = end + 1;
    }
    rest_.erase(0, begin);
    if (rest_.size() < kMaxLineBytes) return;
    sink_(rank_, rest_ + "\n");
    rest_.clear();
  }

  const int64_t rank_;
  const Sink& sink_;
  Pipe pipe_;
  std::string rest_;
};

struct Rank {
  Stream out;
  Stream err;
  std::optional<ChildProcess> child;
};

std::string InPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  if (program.find('/') != std::string::npos || path == nullptr) return program;
  std::string folders = path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path found = fs::path(folders.substr(begin, end - begin)) / program;
    std::error_code reason;
    if (fs::is_regular_file(found, reason) && access(found.c_str(), X_OK) == 0) return found.string();
    begin = end + 1;
  }
  return program;
}

class Launch {
 public:
  Launch(const LaunchOptions& options, const LaunchSinks& sinks) : options_(options), sinks_(sinks) {
    const std::vector<std::string> args(options.command.begin() + 1, options.command.end());
    const std::vector<std::string> command = CommandLine(InPath(options.command.front()), args, {});
    const int port = FreePort();
    for (int64_t number = 0; number < options.ranks; ++number) {
      std::vector<std::string> environment = EnvironmentOfRank({.rank = number, .world = options.ranks, .port = port});
      environment.push_back(mark_.entry());
      auto rank = std::make_unique<Rank>(Rank{Stream(number, sinks.out), Stream(number, sinks.err), std::nullopt});
      rank->child.emplace(command, environment, rank->out.for_child(), rank->err.for_child(), options.command.front());
      rank->out.ChildStarted();
      rank->err.ChildStarted();
      ranks_.push_back(std::move(rank));
    }
  }

  int Run(const std::stop_token& stop) {
    std::optional<double> end_at;
    while (!AllEnded()) {
      Wait(kTickSeconds);
      if (stop.stop_requested()) break;
      if (!first_failed_) continue;
      if (!end_at) end_at = MonotonicSeconds() + options_.peer_grace_s;
      if (MonotonicSeconds() > *end_at) break;
    }
    End();
    return ExitCode();
  }

 private:
  bool AllEnded() const {
    return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->child->ended(); });
  }

  void Wait(double max_s) {
    std::vector<pollfd> fds;
    for (const auto& rank : ranks_) {
      if (rank->child->ended()) continue;
      for (const int fd : {rank->child->pidfd(), rank->out.fd(), rank->err.fd()}) fds.push_back({fd, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), static_cast<int>(std::ceil(max_s * 1000)));
    for (const auto& rank : ranks_) {
      rank->out.Drain();
      rank->err.Drain();
    }
    Reap();
  }

  void Reap() {
    for (size_t number = 0; number < ranks_.size(); ++number) {
      Rank& rank = *ranks_[number];
      if (rank.child->ended() || !rank.child->TryReap()) continue;
      for (Stream* stream : {&rank.out, &rank.err}) {
        stream->Drain();
        stream->Close();
      }
      const ChildEnd& end = rank.child->end();
      if (end.clean() || ending_) continue;
      sinks_.say("rank " + std::to_string(number) + (end.signaled ? " " : " ended with ") + ToString(end));
      if (!first_failed_) first_failed_ = number;
    }
  }

  void End() {
    if (AllEnded()) return;
    ending_ = true;
    Signal(SIGTERM, options_.term_grace_s);
    Signal(SIGKILL, kVanishSeconds);
    if (!AllEnded()) contract::Fail(contract::ErrorCode::kEnvironment, "a rank is still there 20 s after SIGKILL");
  }

  void Signal(int number, double wait_s) {
    for (const auto& rank : ranks_) rank->child->SignalGroup(number);
    const double until = MonotonicSeconds() + wait_s;
    while (!AllEnded() && MonotonicSeconds() < until) Wait(kTickSeconds);
  }

  int ExitCode() const {
    if (!first_failed_) return 0;
    const ChildEnd& end = ranks_[*first_failed_]->child->end();
    return end.signaled ? 128 + end.code : end.code;
  }

  const LaunchOptions& options_;
  const LaunchSinks& sinks_;
  StartMark mark_;  // destroyed after the ranks: then what they left is killed
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::optional<size_t> first_failed_;
  bool ending_ = false;
};

}  // namespace

int LaunchRanks(const LaunchOptions& options, std::stop_token stop, const LaunchSinks& sinks) {
  contract::Check(!options.command.empty() && options.ranks >= 1, "a launch has a program and a rank");
  return Launch(options, sinks).Run(stop);
}

}  // namespace plumbline::conformance
