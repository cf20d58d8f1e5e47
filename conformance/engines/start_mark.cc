// SPDX-License-Identifier: Apache-2.0
// Finds the carriers of a mark in /proc.
#include "conformance/engines/start_mark.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "conformance/contract/error.h"
#include "conformance/engines/unique_fd.h"

namespace plumbline::conformance {
namespace {

// A process that forks as fast as it is killed would hold us for ever; nothing but a cgroup ends that one.
constexpr int kMaxRounds = 100;

// Linux limits one entry to 128 KiB and all of them to some MiB; the first of these is where ours is looked for.
constexpr size_t kMaxEnvironmentBytes = size_t{4} << 20;

// As it was at exec; empty for a process of another user, a zombie or one that is gone.
std::string EnvironmentOf(pid_t pid) {
  std::string text;
  const UniqueFd file(open(("/proc/" + std::to_string(pid) + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[16384];
  while (file && text.size() < kMaxEnvironmentBytes) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

bool HasEntry(std::string_view environment, std::string_view entry) {
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    if (environment.substr(0, end) == entry) return true;
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return false;
}

// The descriptor holds the process's identity: the number may be a stranger's by the time the signal is sent.
bool KillIfMarked(pid_t pid, std::string_view entry) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd || !HasEntry(EnvironmentOf(pid), entry)) return false;
  return syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) == 0;
}

pid_t AsPid(const std::string& name) {
  const bool digits = !name.empty() && name.size() < 10 &&
                      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? static_cast<pid_t>(std::stol(name)) : 0;
}

bool KillOnce(std::string_view entry) {
  bool found = false;
  std::error_code gone;  // a folder of /proc may vanish while it is listed
  for (std::filesystem::directory_iterator it("/proc", gone), end; !gone && it != end; it.increment(gone)) {
    const pid_t pid = AsPid(it->path().filename().string());
    if (pid > 0 && pid != getpid()) found |= KillIfMarked(pid, entry);
  }
  return found;
}

}  // namespace

StartMark::StartMark() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    contract::Fail(contract::ErrorCode::kEnvironment, "getrandom: no random numbers");
  }
  char text[64];
  std::snprintf(text, sizeof text, "PLUMBLINE_START_%016llx=1", static_cast<unsigned long long>(number));
  entry_ = text;
}

StartMark::~StartMark() { KillCarriers(); }

void StartMark::KillCarriers() const {
  for (int round = 0; round < kMaxRounds && KillOnce(entry_); ++round) {
  }
}

}  // namespace plumbline::conformance
