// SPDX-License-Identifier: Apache-2.0
// Starts a program once for each rank on this host, with the variables of docs/formats.md, passes on what the ranks
// print, and ends all of them when one fails. It knows nothing of cases: any program that torchrun can start will do.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::conformance {

struct LaunchOptions {
  std::vector<std::string> command;  // a program, looked for in PATH where it has no slash, and its arguments
  int64_t ranks = 1;
  double peer_grace_s = 5;  // what the other ranks get to end by themselves after one has failed
  double term_grace_s = 2;  // between SIGTERM and SIGKILL
};

// Whole lines, with their ends; a last one that has none gets one.
struct LaunchSinks {
  std::function<void(int64_t rank, std::string_view line)> out;
  std::function<void(int64_t rank, std::string_view line)> err;
  std::function<void(const std::string& message)> say;  // which rank failed, and how
};

// 0 if all ranks ended with 0; else of the rank that failed first its exit code, or 128 and the number of the signal
// that killed it. After a stop request the ranks are ended and the answer is of no use. Throws contract::Error:
// InvalidArgument if the program cannot be executed, Environment if the machine cannot start it.
int LaunchRanks(const LaunchOptions& options, std::stop_token stop, const LaunchSinks& sinks);

}  // namespace plumbline::conformance
