// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>

#include "conformance/contract/error.h"

namespace plumbline::cli {
namespace {

constexpr long kPollNanoseconds = 50'000'000;

}  // namespace

InterruptWatcher::InterruptWatcher() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_);
  thread_ = std::jthread([this](std::stop_token ended) { Watch(ended); });
}

InterruptWatcher::~InterruptWatcher() {
  thread_.request_stop();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

void InterruptWatcher::Watch(std::stop_token ended) {
  const timespec poll{0, kPollNanoseconds};
  while (!ended.stop_requested()) {
    if (sigtimedwait(&signals_, nullptr, &poll) < 0) continue;
    if (stop_.stop_requested()) _exit(static_cast<int>(contract::ExitCode::kFailure));
    std::fprintf(stderr, "\ninterrupted: ending engines and writing what is known; again to quit at once\n");
    stop_.request_stop();
  }
}

}  // namespace plumbline::cli
