// SPDX-License-Identifier: Apache-2.0
// What passes for an integer gradient, and what the refusal says.
#include "optimized/engine/integrality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

const std::string kTensor = "layers.0.attn.q";

std::string Message(const std::vector<float>& gradient) {
  try {
    CheckIntegral(gradient, {kTensor, 100, 7, 3});
  } catch (const contract::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Integrality, AcceptsIntegersUpTo2To24) {
  EXPECT_EQ(Message({}), "");
  EXPECT_EQ(Message({0, -0.0f, 1, -1, 16777216, -16777216}), "");
}

TEST(Integrality, RefusesEverythingElse) {
  for (const float bad : {0.5f, -0.5f, 8388607.5f, 16777218.0f, NAN, INFINITY, -INFINITY, 1e30f, 1e-40f}) {
    EXPECT_NE(Message({1, bad, 2}), "") << bad;
  }
}

TEST(Integrality, NamesTensorElementStepAndRank) {
  const std::string message = Message({1, 2, 0.5f});
  for (const char* part : {"layers.0.attn.q[102]", "0.5", "step 7", "rank 3"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
}

}  // namespace
}  // namespace plumbline::optimized
