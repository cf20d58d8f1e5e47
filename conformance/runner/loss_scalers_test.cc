// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/loss_scalers.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/oracle/loss_scale_check.h"

namespace plumbline::conformance {
namespace {

using contract::DynamicLossScale;
using contract::LossScaler;

double AfterSteps(const DynamicLossScale& settings, LossScaler scaler, int steps) {
  for (int step = 0; step < steps; ++step) scaler = NextLossScaler(settings, scaler, false);
  return scaler.scale;
}

TEST(FirstLossScaler, StaysInBoundsOverTwentySteps) {
  for (int64_t window : {1, 2, 3, 4, 5, 6, 7, 20, 21, 1000}) {
    const DynamicLossScale settings{16, window, 2, false, 1};
    const LossScaler first = FirstLossScaler(settings);
    EXPECT_EQ(first.hysteresis, 2);
    EXPECT_LE(first.scale, kSmallestLossScale);
    if (window >= 5) {
      EXPECT_EQ(first.scale, kSmallestLossScale);
    }
    if (window >= 2) {
      EXPECT_LE(AfterSteps(settings, first, 20), kLargestLossScale) << window;
    }
  }
}

TEST(FirstLossScaler, GrowsWithinTwentyStepsWithTheWindowsOfTheProblems) {
  EXPECT_EQ(AfterSteps({16, 5, 2, false, 1}, FirstLossScaler({16, 5, 2, false, 1}), 20), kLargestLossScale);
}

TEST(FirstLossScaler, IsNotBelowTheMinimum) { EXPECT_EQ(FirstLossScaler({24, 5, 2, false, 4096}).scale, 4096); }

TEST(StepLossScaler, HasEachScaleAndEndsWindowsInSomeSteps) {
  for (int64_t window : {1, 2, 5, 1000}) {
    const DynamicLossScale settings{16, window, 2, false, 1};
    std::set<double> scales;
    int grows = 0;
    for (size_t i = 0; i < 8; ++i) {
      const LossScaler scaler = StepLossScaler(settings, i);
      scales.insert(scaler.scale);
      EXPECT_LT(scaler.last_overflow, scaler.steps);
      const double next = NextLossScaler(settings, scaler, false).scale;
      grows += next > scaler.scale;
      EXPECT_LE(next, 2 * kLargestLossScale);
    }
    EXPECT_EQ(scales.size(), 5u);
    EXPECT_EQ(grows, window == 1 ? 8 : 3) << window;
  }
}

}  // namespace
}  // namespace plumbline::conformance
