// SPDX-License-Identifier: Apache-2.0
// The claims of communicator.h, as tests that every implementation runs: a test program links communicator_claims.cc
// and says how its implementations are made. What only one of them claims is in its own test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optimized/comm/testing/ranks.h"

namespace plumbline::optimized::testing {

struct Implementation {
  std::string name;                    // of the test's parameter: letters and digits
  std::vector<int64_t> worlds;         // that are tried; contains 1, 2 and larger ones
  std::function<Ranks(int64_t)> make;  // communicators of a new group, by rank
};

// Defined by the test program.
std::vector<Implementation> Implementations();

}  // namespace plumbline::optimized::testing
