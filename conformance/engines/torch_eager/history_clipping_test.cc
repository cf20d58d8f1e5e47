// SPDX-License-Identifier: Apache-2.0
// Clipping by history against numbers worked out by hand from docs/semantics.md.
#include "conformance/engines/torch_eager/history_clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::conformance::torch_eager {
namespace {

using contract::NormHistory;

constexpr contract::AdaptiveClipping kClipping = {
    .kind = contract::AdaptiveClipping::Kind::kHistory, .deviations = 2, .decay = 0.75, .warmup_steps = 3};

void ExpectNear(const NormHistory& found, const NormHistory& expected) {
  EXPECT_EQ(found.count, expected.count);
  EXPECT_NEAR(found.mean, expected.mean, 1e-14);
  EXPECT_NEAR(found.variance, expected.variance, 1e-14);
}

// 2; 2 and 4; 2, 4 and 9: their means, and the means of the squares of their distances from these.
TEST(HistoryClipping, TheFirstNormsHaveTheirMeanAndTheirVarianceOverTheirNumber) {
  NormHistory history;
  const std::vector<NormHistory> expected = {{1, 2, 0}, {2, 3, 1}, {3, 5, 26.0 / 3}};
  const double norms[] = {2, 4, 9};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_FALSE(Threshold(kClipping, history).has_value()) << i;
    history = WithNorm(kClipping, history, norms[i]);
    ExpectNear(history, expected[i]);
  }
  ASSERT_TRUE(Threshold(kClipping, history).has_value());
  EXPECT_NEAR(*Threshold(kClipping, history), 5 + 2 * std::sqrt(26.0 / 3), 1e-14);
}

// The threshold is 3 + 2, and 9 counts as 5: the mean becomes 9/4 + 5/4, the variance 3/4 + (3/2)^2 / 4.
TEST(HistoryClipping, AfterThemANormAboveTheThresholdCountsAsTheThreshold) {
  for (const int64_t count : {3, 70}) {
    const NormHistory history = {count, 3, 1};
    EXPECT_EQ(Threshold(kClipping, history), 5.0);
    ExpectNear(WithNorm(kClipping, history, 9), {count + 1, 3.5, 1.3125});
  }
}

// 1 counts as 1, far below though it is: the mean becomes 9/4 + 1/4, the variance 3/4 + (3/2)^2 / 4.
TEST(HistoryClipping, AfterThemANormBelowTheThresholdCountsAsItself) {
  ExpectNear(WithNorm(kClipping, {3, 3, 1}, 1), {4, 2.5, 1.3125});
  ExpectNear(WithNorm(kClipping, {3, 3, 1}, 5), {4, 3.5, 1.3125});
  ExpectNear(WithNorm(kClipping, {3, 0, 0}, 5), {4, 0, 0});
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
