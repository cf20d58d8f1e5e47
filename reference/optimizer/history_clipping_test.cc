// SPDX-License-Identifier: Apache-2.0
// Clipping by history against values worked out by hand.
#include "reference/optimizer/history_clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace plumbline::reference {
namespace {

using contract::NormHistory;

constexpr int64_t kWarmup = 3;

// τ = μ + 1.5 σ: 7 of the mean 4 and variance 4 that most rows begin with.
contract::AdaptiveClipping Clipping() {
  contract::AdaptiveClipping clipping;
  clipping.kind = contract::AdaptiveClipping::Kind::kHistory;
  clipping.deviations = 1.5;
  clipping.decay = 0.75;
  clipping.warmup_steps = kWarmup;
  return clipping;
}

NormHistory After(int64_t count) { return {count, 4, 4}; }

TEST(HistoryFactor, IsOneUntilTheWarmupIsOver) {
  for (const int64_t count : {0, 2}) EXPECT_EQ(HistoryFactor(Clipping(), After(count), 1e6), 1) << count;
  for (const int64_t count : {3, 4, 1000}) EXPECT_EQ(HistoryFactor(Clipping(), After(count), 14), 7 / (14 + 1e-6));
}

TEST(HistoryFactor, IsTheThresholdOverTheNormWithEpsilonWhereThatIsBelowOne) {
  EXPECT_EQ(HistoryFactor(Clipping(), After(3), 0), 1);
  EXPECT_EQ(HistoryFactor(Clipping(), After(3), 6.75), 1);
  EXPECT_EQ(HistoryFactor(Clipping(), After(3), 7 - 2e-6), 1);
  EXPECT_EQ(HistoryFactor(Clipping(), After(3), 7), 7 / (7 + 1e-6)) << "the epsilon counts";
  EXPECT_EQ(HistoryFactor(Clipping(), After(3), 28), 7 / (28 + 1e-6));
}

TEST(HistoryFactor, IsZeroAfterNormsOfZero) { EXPECT_EQ(HistoryFactor(Clipping(), {3, 0, 0}, 2), 0); }

// Of 1, 3, 8: means 1, 2, 4; variances over their number 0, (1 + 1) / 2, (9 + 1 + 16) / 3.
TEST(HistoryAfter, IsMeanAndVarianceOfTheNormsInTheWarmup) {
  NormHistory history;
  const struct { double norm, mean, variance; } rows[] = {{1, 1, 0}, {3, 2, 1}, {8, 4, 26.0 / 3}};
  for (const auto& row : rows) {
    history = HistoryAfter(Clipping(), history, row.norm);
    EXPECT_EQ(history.mean, row.mean);
    EXPECT_EQ(history.variance, row.variance);
  }
  EXPECT_EQ(history.count, kWarmup);
}

// n = 2: δ = 12, μ = 4 + 12 / 3 = 8, σ² = (2 · 4 + 12 · 8) / 3. The norm is far above what would be the threshold.
TEST(HistoryAfter, TakesTheWholeNormInTheWarmupsLastStep) {
  EXPECT_EQ(HistoryAfter(Clipping(), After(2), 16), (NormHistory{3, 8, 104.0 / 3}));
}

// Below the threshold: x = 5, μ = 3 + 5 / 4 = 4.25, σ² = 3 + 0.75² / 4. At and above it x = 7: μ = 3 + 7 / 4 = 4.75,
// σ² = 3 + 2.25² / 4.
TEST(HistoryAfter, MovesByTheNormOrByTheThresholdWhereThatIsLess) {
  for (const int64_t count : {3, 4, 1000}) {
    EXPECT_EQ(HistoryAfter(Clipping(), After(count), 5), (NormHistory{count + 1, 4.25, 3.140625}));
    for (const double norm : {7.0, 14.0, 1e9})
      EXPECT_EQ(HistoryAfter(Clipping(), After(count), norm), (NormHistory{count + 1, 4.75, 4.265625})) << norm;
  }
}

TEST(HistoryAfter, ForgetsAllWithADecayOfZeroAndClipsAtTheMeanWithoutDeviations) {
  contract::AdaptiveClipping clipping = Clipping();
  clipping.decay = 0;
  EXPECT_EQ(HistoryAfter(clipping, After(3), 5), (NormHistory{4, 5, 0}));
  clipping.deviations = 0;
  EXPECT_EQ(HistoryAfter(clipping, After(3), 5), (NormHistory{4, 4, 0}));
  EXPECT_EQ(HistoryFactor(clipping, After(3), 5), 4 / (5 + 1e-6));
}

// A step makes x − μ three quarters of what it was, so after n it is 0.5 · 0.75^n.
TEST(HistoryAfter, ApproachesAConstantNormGeometrically) {
  NormHistory history = After(kWarmup);
  double variance = 4;
  for (int step = 1; step <= 30; ++step) {
    history = HistoryAfter(Clipping(), history, 4.5);
    const double distance = 0.5 * std::pow(0.75, step);
    variance = 0.75 * variance + 0.25 * distance * distance;
    EXPECT_NEAR(history.mean, 4.5 - distance, 1e-14) << step;
    EXPECT_NEAR(history.variance, variance, 1e-14) << step;
  }
}

}  // namespace
}  // namespace plumbline::reference
