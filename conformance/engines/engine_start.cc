// SPDX-License-Identifier: Apache-2.0
// Starting, waiting for and ending the processes of an engine.
#include "conformance/engines/engine_start.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/contract/error.h"
#include "conformance/engines/engine_environment.h"
#include "conformance/engines/monotonic.h"

namespace plumbline::conformance {
namespace {

// How long a process may take to vanish after SIGKILL: it can be stuck in a device driver, but we must not be.
constexpr double kVanishSeconds = 20;

EngineStart::Rank StartOne(const std::vector<std::string>& command, std::vector<std::string> environment,
                           const StartMark& mark, const std::filesystem::path& log_path, int64_t max_log_bytes,
                           const std::string& where) {
  environment.push_back(mark.entry());
  OutputLog log(log_path, max_log_bytes);
  ChildProcess child(command, environment, log.stdout_for_child(), log.stderr_for_child(), where);
  log.ChildStarted();
  return {std::move(child), std::move(log)};
}

}  // namespace

EngineStart::EngineStart(const EngineProgram& engine, const std::vector<std::string>& args,
                         std::optional<int64_t> copies, const std::filesystem::path& log_prefix,
                         int64_t max_log_bytes) try {
  const std::vector<std::string> command = CommandLine(engine.program, engine.extra_args, args);
  const std::string where = "engine " + engine.program.string();
  if (!copies) {
    ranks_.push_back(
        StartOne(command, EnvironmentWithoutRank(), mark_, log_prefix.string() + ".log", max_log_bytes, where));
    return;
  }
  const int port = FreePort();
  for (int64_t rank = 0; rank < *copies; ++rank) {
    const std::string log_path = log_prefix.string() + "-rank" + std::to_string(rank) + ".log";
    ranks_.push_back(StartOne(command, EnvironmentOfRank({.rank = rank, .world = *copies, .port = port}), mark_,
                              log_path, max_log_bytes, where));
  }
} catch (const contract::Error& error) {
  // A program that runs cases has described itself before. One that cannot be executed any more was taken away or
  // changed meanwhile, which no usage is to blame for.
  contract::Fail(
      error.code() == contract::ErrorCode::kInvalidArgument ? contract::ErrorCode::kEnvironment : error.code(),
      error.what());
}

void EngineStart::Wait(double max_s) {
  std::vector<pollfd> fds;
  for (const Rank& rank : ranks_) {
    if (rank.child.ended()) continue;
    for (int fd : {rank.child.pidfd(), rank.log.stdout_fd(), rank.log.stderr_fd()}) fds.push_back({fd, POLLIN, 0});
  }
  if (fds.empty()) return;
  poll(fds.data(), fds.size(), static_cast<int>(std::ceil(std::max(max_s, 0.0) * 1000)));
  for (Rank& rank : ranks_) rank.log.Drain();
  Reap();
}

void EngineStart::Reap() {
  std::optional<size_t> failed;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (rank.child.ended() || !rank.child.TryReap()) continue;
    rank.log.Close();
    const ChildEnd& end = rank.child.end();
    const bool worse = !failed || (end.signaled && !ranks_[*failed].child.end().signaled);
    if (!end.clean() && worse) failed = i;
  }
  // Later failures are mostly consequences: of the first one, or of our own End().
  if (!first_failed_ && !ending_) first_failed_ = failed;
}

bool EngineStart::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.child.ended(); });
}

void EngineStart::End(double grace_s) {
  ending_ = true;
  for (const Rank& rank : ranks_) rank.child.SignalGroup(SIGTERM);
  const double kill_at = MonotonicSeconds() + grace_s;
  for (double now = kill_at - grace_s; !all_ended() && now < kill_at; now = MonotonicSeconds()) Wait(kill_at - now);
  for (const Rank& rank : ranks_) rank.child.SignalGroup(SIGKILL);
  const double give_up_at = MonotonicSeconds() + kVanishSeconds;
  while (!all_ended() && MonotonicSeconds() < give_up_at) Wait(0.1);
  if (!all_ended()) {
    contract::Fail(contract::ErrorCode::kEnvironment, "an engine process is still there 20 s after SIGKILL");
  }
}

std::string EngineStart::EndOf(size_t rank) const {
  std::string text = ranks_.size() > 1 ? "rank " + std::to_string(rank) + " " : "";
  text += ranks_[rank].child.end().signaled ? "" : "ended with ";
  text += ToString(ranks_[rank].child.end());
  const std::string line = ranks_[rank].log.LastErrorLine();
  return line.empty() ? text : text + "; last line of its errors: " + line;
}

}  // namespace plumbline::conformance
