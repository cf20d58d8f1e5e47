// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of a test, whatever their communicators are made of.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conformance/contract/error.h"
#include "optimized/comm/communicator.h"

namespace plumbline::optimized::testing {

using Ranks = std::vector<std::unique_ptr<Communicator>>;

// What a rank threw; "" if nothing.
struct Outcome {
  std::string message;
  contract::ErrorCode code = contract::ErrorCode::kInternal;
};

// Runs body(rank's communicator) in one thread per rank.
inline std::vector<Outcome> RunRanks(Ranks& ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Outcome> outcomes(ranks.size());
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[rank]);
      } catch (const contract::Error& error) {
        outcomes[rank] = {error.what(), error.code()};
      }
    });
  }
  threads.clear();
  return outcomes;
}

inline void RunOk(Ranks& ranks, const std::function<void(Communicator&)>& body) {
  for (const Outcome& outcome : RunRanks(ranks, body)) EXPECT_EQ(outcome.message, "");
}

inline CallOptions Tag(const std::string& tag, int stream = 0) { return {tag, std::chrono::seconds(20), stream}; }

}  // namespace plumbline::optimized::testing
