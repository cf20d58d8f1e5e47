// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGTERM, SIGQUIT (Ctrl-\) and SIGHUP (the terminal is gone) as a stop request; a second one ends the program
// at once. Either way it ends with 128 plus the signal's number, as a shell says it: 130 after Ctrl-C. What comes
// within half a second of the first counts as the same: `timeout` and shells send a signal to the process and then to
// its group. Signals are taken by one thread that waits for them, so no code runs in a signal handler.
#pragma once

#include <atomic>
#include <csignal>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace plumbline::cli {

class InterruptWatcher {
 public:
  static constexpr double kRepeatSeconds = 0.5;

  // Make it before any other thread: it blocks the signals, and later threads inherit that.
  // `words`: what happens then, for people.
  explicit InterruptWatcher(std::string words, double repeat_s = kRepeatSeconds);
  ~InterruptWatcher();
  std::stop_token token() const { return stop_.get_token(); }
  std::optional<int> exit_code() const;  // none where nothing was interrupted

 private:
  void Watch(std::stop_token ended);

  std::string words_;
  double repeat_s_;
  sigset_t signals_;
  sigset_t previous_;
  std::stop_source stop_;
  std::atomic<int> signal_ = 0;
  std::jthread thread_;
};

}  // namespace plumbline::cli
