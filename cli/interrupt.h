// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a stop request; a second one ends the program at once.
// Signals are taken by one thread that waits for them, so no code runs in a signal handler.
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace plumbline::cli {

class InterruptWatcher {
 public:
  // Make it before any other thread: it blocks the signals, and later threads inherit that.
  InterruptWatcher();
  ~InterruptWatcher();
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Watch(std::stop_token ended);

  sigset_t signals_;
  sigset_t previous_;
  std::stop_source stop_;
  std::jthread thread_;
};

}  // namespace plumbline::cli
