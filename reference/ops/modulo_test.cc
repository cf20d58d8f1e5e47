// SPDX-License-Identifier: Apache-2.0
// Mod and Wrap against counters that are walked step by step.
#include "reference/ops/modulo.h"

#include <gtest/gtest.h>

namespace plumbline::reference {
namespace {

TEST(Mod, IsACounterThatStartsAgainAtTheModulusAlsoBelowZero) {
  for (const int m : {1, 2, 3, 8, 24, 29, 40}) {
    int expected = 0;  // of −7m
    for (int x = -7 * m; x <= 7 * m; ++x) {
      EXPECT_EQ(Mod(x, m), expected) << x << " mod " << m;
      expected = expected + 1 == m ? 0 : expected + 1;
    }
  }
}

TEST(Mod, IsExactWhereTheQuotientIsNot) {
  const double large = 9007199254740989.0;  // 2^53 − 3 = 29 · 310593077749689 + 8
  EXPECT_EQ(Mod(large, 29), static_cast<double>(9007199254740989LL % 29));
  EXPECT_EQ(Mod(-large, 29), static_cast<double>(29 - 9007199254740989LL % 29));
}

TEST(Wrap, CountsUpFromMinusTheBoundAndJumpsBack) {
  for (const int b : {0, 1, 2, 14}) {
    int expected = -b;  // of −b − 5(2b + 1)
    for (int x = -b - 5 * (2 * b + 1); x <= 6 * (2 * b + 1); ++x) {
      EXPECT_EQ(Wrap(x, b), expected) << "wrap(" << x << "; " << b << ")";
      expected = expected == b ? -b : expected + 1;
    }
  }
}

TEST(Wrap, LeavesValuesWithinTheBoundAlone) {
  for (int x = -14; x <= 14; ++x) EXPECT_EQ(Wrap(x, 14), x);
  EXPECT_EQ(Wrap(15, 14), -14);
  EXPECT_EQ(Wrap(-15, 14), 14);
}

}  // namespace
}  // namespace plumbline::reference
