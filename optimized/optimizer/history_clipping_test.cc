// SPDX-License-Identifier: Apache-2.0
// Thresholds and histories by hand: before the end of the warm-up, at it and after it.
#include "optimized/optimizer/history_clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::optimized {
namespace {

using contract::NormHistory;

constexpr contract::AdaptiveClipping kOptions{
    .kind = contract::AdaptiveClipping::Kind::kHistory, .deviations = 1.5, .decay = 0.75, .warmup_steps = 4};

void ExpectHistory(const NormHistory& actual, const NormHistory& expected) {
  EXPECT_EQ(actual.count, expected.count);
  EXPECT_NEAR(actual.mean, expected.mean, 1e-14);
  EXPECT_NEAR(actual.variance, expected.variance, 1e-14);
}

// Mean and variance of 2; of 2, 6; of 2, 6, 7; of 2, 6, 7, 13: means 2, 4, 5, 7, sums of squared distances 0, 8,
// 9 + 1 + 4 = 14, 25 + 1 + 0 + 36 = 62.
TEST(HistoryClipping, RemembersMeanAndVarianceOfTheFirstNormsAndClipsNoneOfThem) {
  NormHistory history;
  const std::vector<std::pair<double, NormHistory>> steps = {
      {2, {1, 2, 0}}, {6, {2, 4, 4}}, {7, {3, 5, 14 / 3.0}}, {13, {4, 7, 15.5}}};
  for (const auto& [norm, expected] : steps) {
    EXPECT_EQ(HistoryCoefficient(kOptions, history, 1e9), 1) << history.count;
    history = Remember(kOptions, history, norm);
    ExpectHistory(history, expected);
  }
  EXPECT_LT(HistoryCoefficient(kOptions, history, 1e9), 1);
}

// tau = 10 + 1.5 * 4 = 16. A norm of 26 counts as 16: the mean is 0.75 * 10 + 0.25 * 16 = 11.5, the variance
// 0.75 * 16 + 0.25 * (16 - 11.5)^2. One of 14 counts as itself: 11 and 12 + 0.25 * 9. At n = N and beyond alike.
TEST(HistoryClipping, AfterTheWarmupBothFollowTheNormUpToTheThreshold) {
  for (const int64_t count : {4, 5, 1000}) {
    const NormHistory history{count, 10, 16};
    EXPECT_NEAR(HistoryCoefficient(kOptions, history, 26), 16 / 26.000001, 1e-15);
    EXPECT_EQ(HistoryCoefficient(kOptions, history, 14), 1);
    EXPECT_LT(HistoryCoefficient(kOptions, history, 16), 1) << "the epsilon counts";
    EXPECT_EQ(HistoryCoefficient(kOptions, history, 0), 1);
    ExpectHistory(Remember(kOptions, history, 26), {count + 1, 11.5, 17.0625});
    ExpectHistory(Remember(kOptions, history, 14), {count + 1, 11, 14.25});
    ExpectHistory(Remember(kOptions, history, 0), {count + 1, 7.5, 12 + 0.25 * 56.25});
  }
}

// Three norms of 0 before: the threshold is 0, and so is the factor.
TEST(HistoryClipping, AThresholdOfZeroLeavesNothing) {
  const NormHistory history{4, 0, 0};
  EXPECT_EQ(HistoryCoefficient(kOptions, history, 3), 0);
  EXPECT_EQ(HistoryCoefficient(kOptions, history, 0), 0);
  ExpectHistory(Remember(kOptions, history, 3), {5, 0, 0});
}

}  // namespace
}  // namespace plumbline::optimized
