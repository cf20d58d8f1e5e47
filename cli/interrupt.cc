// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <utility>

namespace plumbline::cli {
namespace {

constexpr long kPollNanoseconds = 50'000'000;
constexpr int kSignalled = 128;

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool IsIgnored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

InterruptWatcher::InterruptWatcher(std::string words, double repeat_s) : words_(std::move(words)), repeat_s_(repeat_s) {
  sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM}) sigaddset(&signals_, number);
  // nohup ignores the one, and shells the other of what they start in the background: then they are no requests.
  for (const int number : {SIGHUP, SIGQUIT}) {
    if (!IsIgnored(number)) sigaddset(&signals_, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_);
  thread_ = std::jthread([this](std::stop_token ended) { Watch(ended); });
}

InterruptWatcher::~InterruptWatcher() {
  thread_.request_stop();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<int> InterruptWatcher::exit_code() const {
  const int taken = signal_;
  return taken == 0 ? std::nullopt : std::optional(kSignalled + taken);
}

void InterruptWatcher::Watch(std::stop_token ended) {
  const timespec poll{0, kPollNanoseconds};
  double first_s = 0;
  while (!ended.stop_requested()) {
    const int taken = sigtimedwait(&signals_, nullptr, &poll);
    if (taken < 0) continue;
    const bool is_first = !stop_.stop_requested();
    if (!is_first && Now() - first_s < repeat_s_) continue;
    if (!is_first) _exit(kSignalled + taken);
    first_s = Now();
    signal_ = taken;
    std::fprintf(stderr, "\ninterrupted: %s\n", words_.c_str());
    stop_.request_stop();
  }
}

}  // namespace plumbline::cli
