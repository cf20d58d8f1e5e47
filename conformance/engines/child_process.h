// SPDX-License-Identifier: Apache-2.0
// One child process that leads its own process group: started safely from any thread, ended together with its group,
// always reaped. It does not read the child's output (child_output.h) and knows nothing of engines.
//
// Why not posix_spawn: it cannot ask for a signal at the death of the parent. Between fork and exec the child calls
// only async-signal-safe functions, so other threads may hold any lock meanwhile.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "conformance/engines/unique_fd.h"

namespace plumbline::conformance {

struct ChildEnd {
  bool signaled = false;
  int code = 0;  // number of the signal, or exit code

  bool clean() const { return !signaled && code == 0; }
};

// "killed by SIGSEGV", "exit code 7"
std::string ToString(const ChildEnd& end);

class ChildProcess {
 public:
  // argv[0] is the path of the program. Standard input is empty; all descriptors but the standard three are closed. The
  // child gets SIGKILL when the calling *thread* ends. Throws contract::Error beginning with `where`: InvalidArgument
  // if the program cannot be executed, Environment if the machine cannot start it.
  ChildProcess(const std::vector<std::string>& argv, const std::vector<std::string>& environment, int stdout_fd,
               int stderr_fd, const std::string& where);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills and reaps

  bool ended() const { return end_.has_value(); }
  const ChildEnd& end() const { return *end_; }
  pid_t pid() const { return pid_; }  // nobody else's as long as ended() is false
  int pidfd() const { return pidfd_.get(); }  // readable when the child has ended

  // If the child has ended: kills what is left of its group, reaps it, and returns true. Never blocks.
  bool TryReap();

  // To the whole group, while the child has not been reaped.
  void SignalGroup(int signal_number) const;

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ChildEnd> end_;
};

}  // namespace plumbline::conformance
