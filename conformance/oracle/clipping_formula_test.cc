// SPDX-License-Identifier: Apache-2.0
// Against numbers worked out by hand from docs/semantics.md, "Clipping".
#include "conformance/oracle/clipping_formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::AdaptiveClipping;
using contract::NormHistory;
using contract::ParameterSpec;
using contract::UnitShape;

ParameterSpec Matrix(int64_t rows, int64_t cols, UnitShape units) {
  ParameterSpec parameter;
  parameter.rows = rows;
  parameter.cols = cols;
  parameter.units = units;
  return parameter;
}

AdaptiveClipping Units(double ratio, double eps) { return {AdaptiveClipping::Kind::kUnit, ratio, eps}; }

AdaptiveClipping History(double deviations, double decay, int64_t warmup_steps) {
  AdaptiveClipping rule;
  rule.kind = AdaptiveClipping::Kind::kHistory;
  rule.deviations = deviations;
  rule.decay = decay;
  rule.warmup_steps = warmup_steps;
  return rule;
}

TEST(UnitOf, IsTheWholeTheRowOrTheColumn) {
  EXPECT_EQ(UnitOf(Matrix(1, 7, UnitShape::kWhole), 5), 0);
  EXPECT_EQ(UnitOf(Matrix(3, 4, UnitShape::kRows), 7), 1);
  EXPECT_EQ(UnitOf(Matrix(3, 4, UnitShape::kColumns), 7), 3);
}

// Columns of [2, 3]: gradients (3, 4), (0, 0), (0.3, 0.4) of norms 5, 0, 0.5; weights (6, 8), (1, 0), (0, 0.001) of
// norms 10, 1, 0.001. With ratio 0.1 and epsilon 0.02: allowed are 1, 0.1 and 0.002.
TEST(UnitClippings, AreTheRatioOfNormsOfEachColumn) {
  const std::vector<double> gradient = {3, 0, 0.3, 4, 0, 0.4};
  const std::vector<float> master = {6, 1, 0, 8, 0, 0.001f};
  const std::vector<Clipping> clippings =
      UnitClippings(Matrix(2, 3, UnitShape::kColumns), Units(0.1, 0.02), gradient, master);
  ASSERT_EQ(clippings.size(), 3u);
  EXPECT_NEAR(clippings[0].factor, 0.2, 1e-15);
  EXPECT_EQ(clippings[1].factor, 1);
  EXPECT_EQ(clippings[1].relative_bound, 0);
  EXPECT_NEAR(clippings[2].factor, 0.004, 1e-15);
  EXPECT_GT(clippings[2].relative_bound, 0);
  EXPECT_LT(clippings[2].relative_bound, 1e-6);
}

TEST(UnitClippings, AreThoseOfRowsAndOfTheWhole) {
  const std::vector<double> gradient = {3, 4, 0, 1};
  const std::vector<float> master = {0.6f, 0.8f, 2, 0};
  const std::vector<Clipping> rows = UnitClippings(Matrix(2, 2, UnitShape::kRows), Units(1, 0.5), gradient, master);
  EXPECT_NEAR(rows[0].factor, 0.2, 1e-7);
  EXPECT_EQ(rows[1].factor, 1);
  const std::vector<Clipping> whole = UnitClippings(Matrix(1, 4, UnitShape::kWhole), Units(1, 0.5), gradient, master);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_NEAR(whole[0].factor, std::sqrt(5.0 / 26), 1e-7);
}

// Engines may be on either side of a threshold that is within rounding.
TEST(UnitClippings, LeaveRoomAtTheThresholdAndNowhereElse) {
  const auto at = [](double factor) {
    return UnitClippings(Matrix(1, 1, UnitShape::kWhole), Units(1, 1e-3), std::vector<double>{1 / factor},
                         std::vector<float>{1})[0];
  };
  EXPECT_GT(at(1 + 1e-8).relative_bound, 0);
  EXPECT_EQ(at(1 + 1e-8).factor, 1);
  EXPECT_EQ(at(1.00001).relative_bound, 0);
}

TEST(HistoryThreshold, WaitsForTheWarmUp) {
  EXPECT_EQ(HistoryThreshold(History(2, 0.5, 4), {3, 1, 4}), 0);
  EXPECT_EQ(HistoryThreshold(History(2, 0.5, 4), {4, 1, 4}), 5);
}

// Mean and variance (over their number) of 2, 4, 9: 5 and 26/3.
TEST(NextHistory, IsTheMeanAndVarianceOfTheFirstNorms) {
  const AdaptiveClipping rule = History(1, 0.75, 3);
  NormHistory history;
  for (double norm : {2.0, 4.0, 9.0}) {
    const BoundedHistory next = NextHistory(rule, history, norm);
    history = {history.count + 1, next.mean.value, next.variance.value};
  }
  EXPECT_DOUBLE_EQ(history.mean, 5);
  EXPECT_DOUBLE_EQ(history.variance, 26.0 / 3);
}

// After it: threshold 5 + 2 * 3 = 11, so that 31 counts as 11: mean 0.75 * 5 + 0.25 * 11 = 6.5, variance
// 0.75 * 9 + 0.25 * 4.5^2 = 11.8125. A norm of 7: mean 5.5, variance 6.75 + 0.25 * 2.25 = 7.3125.
TEST(NextHistory, ThenForgetsExponentiallyAndCountsWhatWasClippedToAsTheNorm) {
  const AdaptiveClipping rule = History(2, 0.75, 3);
  const NormHistory before{3, 5, 9};
  const BoundedHistory clipped = NextHistory(rule, before, 31);
  EXPECT_DOUBLE_EQ(clipped.mean.value, 6.5);
  EXPECT_DOUBLE_EQ(clipped.variance.value, 11.8125);
  const BoundedHistory whole = NextHistory(rule, before, 7);
  EXPECT_DOUBLE_EQ(whole.mean.value, 5.5);
  EXPECT_DOUBLE_EQ(whole.variance.value, 7.3125);
}

// The same in other legal orders of evaluation, and with a fused multiply-add.
TEST(NextHistory, AllowsRoundingsOfFp64InAnyOrder) {
  const AdaptiveClipping rule = History(2.3, 0.7, 3);
  uint64_t random = 1;
  const auto draw = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(random >> 11) * 0x1p-53;
  };
  for (int i = 0; i < 10000; ++i) {
    const NormHistory before{i % 7, 0.01 + draw(), std::pow(10, -8 * draw()) * draw()};
    const double norm = 2 * draw();
    const BoundedHistory next = NextHistory(rule, before, norm);
    const double n = static_cast<double>(before.count);
    if (before.count < 3) {
      const double mean = (n * before.mean + norm) / (n + 1);
      const double old_part = (norm - before.mean) / (n + 1) * (norm - mean);
      EXPECT_TRUE(next.mean.Holds(mean));
      EXPECT_TRUE(next.variance.Holds(before.variance * (n / (n + 1)) + old_part));
      continue;
    }
    const double x = std::min(norm, std::fma(2.3, std::sqrt(before.variance), before.mean));
    const double mean = std::fma(1 - 0.7, x - before.mean, before.mean);
    EXPECT_TRUE(next.mean.Holds(mean));
    EXPECT_TRUE(next.variance.Holds(std::fma(0.7, before.variance, (1 - 0.7) * ((x - mean) * (x - mean)))));
  }
}

TEST(NextHistory, HoldsNothingThatIsRoundedToFp32) {
  const AdaptiveClipping rule = History(2, 0.75, 3);
  for (const NormHistory& before : {NormHistory{3, 5, 9}, NormHistory{1, 2, 0.5}}) {
    const double norm = 7.123456789;
    const BoundedHistory exact = NextHistory(rule, before, norm);
    EXPECT_TRUE(exact.mean.Holds(exact.mean.value));
    EXPECT_FALSE(exact.mean.Holds(static_cast<float>(exact.mean.value)));
    EXPECT_FALSE(exact.variance.Holds(static_cast<float>(exact.variance.value)));
    const BoundedHistory of_rounded = NextHistory(rule, before, static_cast<float>(norm));
    EXPECT_FALSE(exact.mean.Holds(of_rounded.mean.value));
    EXPECT_FALSE(exact.variance.Holds(of_rounded.variance.value));
  }
}

}  // namespace
}  // namespace plumbline::conformance
