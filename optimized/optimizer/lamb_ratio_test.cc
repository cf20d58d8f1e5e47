// SPDX-License-Identifier: Apache-2.0
// The ratio between its limits, at each of them, and where there is none.
#include "optimized/optimizer/lamb_ratio.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumbline::optimized {
namespace {

constexpr contract::OptimizerParams kParams{.max_coeff = 4, .min_coeff = 0.25};

TEST(LambRatio, IsTheMastersNormOverTheDirectionsWithinBothLimits) {
  EXPECT_EQ(LambRatio(kParams, 3, 2), 1.5);
  EXPECT_EQ(LambRatio(kParams, 2, 4), 0.5);
  EXPECT_EQ(LambRatio(kParams, 8, 2), 4);
  EXPECT_EQ(LambRatio(kParams, 9, 2), 4);
  EXPECT_EQ(LambRatio(kParams, 1, 4), 0.25);
  EXPECT_EQ(LambRatio(kParams, 1, 5), 0.25);
}

// Neither limit holds for it: 1 is above the one and below the other.
TEST(LambRatio, IsOneWhereEitherNormIsZero) {
  for (const contract::OptimizerParams& params :
       {contract::OptimizerParams{.max_coeff = 0.5, .min_coeff = 0.25}, {.max_coeff = 4, .min_coeff = 2}}) {
    EXPECT_EQ(LambRatio(params, 0, 3), 1);
    EXPECT_EQ(LambRatio(params, 3, 0), 1);
    EXPECT_EQ(LambRatio(params, 0, 0), 1);
  }
}

TEST(LambRatio, OfADirectionThatIsNoNumberIsNone) { EXPECT_TRUE(std::isnan(LambRatio(kParams, 1, NAN))); }

}  // namespace
}  // namespace plumbline::optimized
