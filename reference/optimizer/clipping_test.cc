// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizer/clipping.h"

#include <gtest/gtest.h>

#include <limits>

namespace plumbline::reference {
namespace {

TEST(GlobalNorm, IsOneNormOverAllElementsOfAllTensors) {
  EXPECT_EQ(GlobalNorm({Matrix(1, 2, {1, -2}), Matrix(), Matrix(2, 2, {0, 2, 4, 0})}), 5);
  EXPECT_EQ(GlobalNorm({}), 0);
}

TEST(ClipFactor, IsTheThresholdOverTheNormWithEpsilonAboveTheThreshold) {
  EXPECT_EQ(ClipFactor(4, 1), 1 / (4 + 1e-6));
  EXPECT_LT(ClipFactor(4, 1) * 4, 1);
}

TEST(ClipFactor, IsOneBelowTheThreshold) {
  EXPECT_EQ(ClipFactor(0.999, 1), 1);
  EXPECT_EQ(ClipFactor(0, 1), 1);
}

// The epsilon counts: at a norm equal to the threshold the gradient shrinks a little, at 1e-6 less it does not.
TEST(ClipFactor, AtTheThresholdShrinksByTheEpsilon) {
  EXPECT_EQ(ClipFactor(1, 1), 1 / (1 + 1e-6));
  EXPECT_EQ(ClipFactor(1 - 2e-6, 1), 1);
  // Exactly 1: norm + 1e-6 is c itself.
  EXPECT_EQ(ClipFactor(0, 1e-6), 1);
}

TEST(ClipFactor, OfZeroClipsNothing) { EXPECT_EQ(ClipFactor(1e30, 0), 1); }

TEST(AllFinite, SeesOneNanOrInfinityAnywhere) {
  const Matrix good(1, 2, {1, -1e300});
  EXPECT_TRUE(AllFinite({good, Matrix(), good}));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(AllFinite({good, Matrix(1, 2, {0, bad})}));
    EXPECT_FALSE(AllFinite({Matrix(1, 2, {bad, 0}), good}));
  }
}

TEST(Scaled, MultipliesEachElement) { EXPECT_EQ(Scaled(Matrix(1, 2, {3, -4}), 0.5), Matrix(1, 2, {1.5, -2})); }

}  // namespace
}  // namespace plumbline::reference
