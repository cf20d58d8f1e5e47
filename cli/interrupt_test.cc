// SPDX-License-Identifier: Apache-2.0
// Each test ends a process of its own by signals, and waits for nothing but that they are taken.
#include "cli/interrupt.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>

namespace plumbline::cli {
namespace {

constexpr int kLivesOn = 7;
constexpr double kNever = 1e9;

// Sends it to ourselves, and returns when the watcher has taken it.
void SendAndAwait(int number) {
  kill(getpid(), number);
  for (sigset_t pending; sigpending(&pending) == 0 && sigismember(&pending, number) == 1;) sched_yield();
}

// What a process ends with that sends itself these, `repeat_s` being the time in which they count as one. Without a
// watcher's word it ends as if nothing had been sent.
[[noreturn]] void Send(std::initializer_list<int> numbers, double repeat_s) {
  auto watcher = std::make_unique<InterruptWatcher>("ending what runs", repeat_s);
  for (int number : numbers) SendAndAwait(number);
  while (numbers.size() > 0 && !watcher->token().stop_requested()) sched_yield();
  const int code = watcher->exit_code().value_or(kLivesOn);
  watcher.reset();  // what was taken has been dealt with
  std::_Exit(code == 128 + *numbers.begin() ? kLivesOn : 1);
}

using InterruptDeathTest = ::testing::Test;

TEST(InterruptDeathTest, ARequestLeavesTheProgramToEndByItself) {
  const char* const words = "interrupted: ending what runs";
  EXPECT_EXIT(Send({SIGINT}, 0), ::testing::ExitedWithCode(kLivesOn), words);
  EXPECT_EXIT(Send({SIGTERM}, 0), ::testing::ExitedWithCode(kLivesOn), words);
  EXPECT_EXIT(Send({SIGHUP}, 0), ::testing::ExitedWithCode(kLivesOn), words);
  EXPECT_EXIT(Send({SIGQUIT}, 0), ::testing::ExitedWithCode(kLivesOn), words);
}

// As nohup starts a program.
[[noreturn]] void IgnoreAndSend(int number) {
  std::signal(number, SIG_IGN);
  const InterruptWatcher watcher("ending what runs", 0);
  kill(getpid(), number);
  kill(getpid(), SIGTERM);
  while (!watcher.token().stop_requested()) sched_yield();
  std::_Exit(watcher.exit_code() == 143 ? kLivesOn : 1);
}

TEST(InterruptDeathTest, WhatWasIgnoredAtTheStartIsNoRequest) {
  EXPECT_EXIT(IgnoreAndSend(SIGHUP), ::testing::ExitedWithCode(kLivesOn), "");
  EXPECT_EXIT(IgnoreAndSend(SIGQUIT), ::testing::ExitedWithCode(kLivesOn), "");
}

TEST(InterruptDeathTest, ASecondEndsItAtOnceWithItsOwnCode) {
  EXPECT_EXIT(Send({SIGINT, SIGINT}, 0), ::testing::ExitedWithCode(130), "");
  EXPECT_EXIT(Send({SIGINT, SIGTERM}, 0), ::testing::ExitedWithCode(143), "");
}

TEST(InterruptDeathTest, RepeatsThatComeWithTheFirstAreOneRequest) {
  EXPECT_EXIT(Send({SIGINT, SIGINT, SIGINT}, kNever), ::testing::ExitedWithCode(kLivesOn), "");
  EXPECT_EXIT(Send({SIGTERM, SIGINT}, kNever), ::testing::ExitedWithCode(kLivesOn), "");
}

}  // namespace
}  // namespace plumbline::cli
