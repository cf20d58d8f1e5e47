// SPDX-License-Identifier: Apache-2.0
// A mark in the environment of everything that one start of an engine brings to life, so that daemons, which leave the
// process group and have no parent of ours, are found in /proc when the start is over. It does not reach a process that
// replaced its environment, or that runs as another user.
#pragma once

#include <string>

namespace plumbline::conformance {

class StartMark {
 public:
  // Environment if the machine has no random numbers.
  StartMark();
  StartMark(const StartMark&) = delete;
  StartMark& operator=(const StartMark&) = delete;
  // Kills what carries the mark. Members are destroyed in the reverse order of their declaration: declare the mark
  // before the processes that carry it, or it kills them with their parents still there to be blamed for it.
  ~StartMark();

  // "PLUMBLINE_START_0123456789abcdef=1": an entry for execve. The name is new each time, so that a harness inside an
  // engine hides nothing from the one outside.
  const std::string& entry() const { return entry_; }

  // SIGKILL to every process that carries the mark, again until none is found (they may fork meanwhile).
  void KillCarriers() const;

 private:
  std::string entry_;
};

}  // namespace plumbline::conformance
