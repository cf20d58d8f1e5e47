// SPDX-License-Identifier: Apache-2.0
// Sequences of steps by hand, skipped (x) or not (.): every branch of the scaler, its limits, and where it goes on
// from.
#include "optimized/optimizer/loss_scaler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumbline::optimized {
namespace {

using contract::DynamicLossScale;
using contract::LossScaler;

// The scale and the overflows that are left after each step; counts of steps are checked on the way.
struct After {
  double scale;
  int64_t hysteresis;
  friend bool operator==(const After&, const After&) = default;
};

void PrintTo(const After& after, std::ostream* out) { *out << after.scale << "/" << after.hysteresis; }

std::vector<After> RunOn(const DynamicLossScale& settings, LossScaler scaler, const std::string& steps) {
  std::vector<After> result;
  for (const char step : steps) {
    const LossScaler before = scaler;
    scaler = AfterStep(settings, before, step == 'x');
    EXPECT_EQ(scaler.steps, before.steps + 1);
    EXPECT_EQ(scaler.last_overflow, step == 'x' ? before.steps : before.last_overflow);
    result.push_back({scaler.scale, scaler.hysteresis});
  }
  return result;
}

std::vector<After> RunFromTheBeginning(const DynamicLossScale& settings, const std::string& steps) {
  return RunOn(settings, contract::InitialLossScaler(settings), steps);
}

using Sequence = std::vector<After>;

TEST(LossScaler, HalvesAtEachOverflowWithAHysteresisOfOne) {
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 4, .window = 100, .hysteresis = 1}, "xx.x"),
            (Sequence{{8, 1}, {4, 1}, {4, 1}, {2, 1}}));
}

TEST(LossScaler, HalvesFromTheLastOverflowThatTheHysteresisAllows) {
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 4, .window = 100, .hysteresis = 2}, "x.xx."),
            (Sequence{{16, 1}, {16, 1}, {8, 1}, {4, 1}, {4, 1}}));
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 4, .window = 100, .hysteresis = 3}, "xxxx"),
            (Sequence{{16, 2}, {16, 1}, {8, 1}, {4, 1}}));
}

TEST(LossScaler, WithConsecutiveHysteresisAStepThatIsNotSkippedGivesAllOverflowsBack) {
  EXPECT_EQ(RunFromTheBeginning(
                {.initial_scale_power = 4, .window = 100, .hysteresis = 2, .consecutive_hysteresis = true}, "x.x.xxx."),
            (Sequence{{16, 1}, {16, 2}, {16, 1}, {16, 2}, {16, 1}, {8, 1}, {4, 1}, {4, 2}}));
}

// l begins as -1: the first window is over after n steps, as each one is that follows an overflow.
TEST(LossScaler, DoublesAfterEachWindowWithoutOverflowCountedFromTheLastOne) {
  EXPECT_EQ(
      RunFromTheBeginning({.initial_scale_power = 2, .window = 3, .hysteresis = 1}, "......x....x"),
      (Sequence{{4, 1}, {4, 1}, {8, 1}, {8, 1}, {8, 1}, {16, 1}, {8, 1}, {8, 1}, {8, 1}, {16, 1}, {16, 1}, {8, 1}}));
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 2, .window = 1, .hysteresis = 1}, "..x.xx."),
            (Sequence{{8, 1}, {16, 1}, {8, 1}, {16, 1}, {8, 1}, {4, 1}, {8, 1}}));
}

TEST(LossScaler, AFullWindowGivesAllOverflowsBackAndAShorterOneNone) {
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 4, .window = 3, .hysteresis = 2}, "x..x...x"),
            (Sequence{{16, 1}, {16, 1}, {16, 1}, {8, 1}, {8, 1}, {8, 1}, {16, 2}, {16, 1}}));
}

TEST(LossScaler, DoesNotFallBelowItsMinimum) {
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 3, .window = 2, .hysteresis = 1, .min_scale = 4}, "xxx..x"),
            (Sequence{{4, 1}, {4, 1}, {4, 1}, {4, 1}, {8, 1}, {4, 1}}));
  EXPECT_EQ(RunFromTheBeginning({.initial_scale_power = 0, .window = 9, .hysteresis = 1}, "x"), (Sequence{{1, 1}}));
}

TEST(LossScaler, StaysAt2To126AndStillGivesOverflowsBack) {
  const DynamicLossScale settings{.window = 1, .hysteresis = 2};
  EXPECT_EQ(RunOn(settings, {0x1p125, 7, 3, 1}, "..xx."),
            (Sequence{{0x1p126, 2}, {0x1p126, 2}, {0x1p126, 1}, {0x1p125, 1}, {0x1p126, 2}}));
}

// k = 7 and l = 4: with n = 5 the scale doubles after k = 9, and would after k = 10 if the window began anew.
TEST(LossScaler, GoesOnInTheMiddleOfAWindowAndWithMoreOverflowsLeftThanItBeginsWith) {
  EXPECT_EQ(RunOn({.window = 5, .hysteresis = 2}, {64, 7, 4, 3}, "..."), (Sequence{{64, 3}, {64, 3}, {128, 2}}));
  EXPECT_EQ(RunOn({.window = 5, .hysteresis = 2}, {64, 7, 4, 3}, "xxx"), (Sequence{{64, 2}, {64, 1}, {32, 1}}));
  EXPECT_EQ(RunOn({.window = 5, .hysteresis = 1}, {64, 7, 4, 3}, "x"), (Sequence{{32, 3}}));
}

TEST(LossScale, IsTheScalersIfItIsDynamicAndElseTheConfigs) {
  contract::RunConfig config;
  EXPECT_EQ(LossScale(config, {64}), 1);
  config.storage = contract::DType::kF16;
  config.loss_scale = 512;
  EXPECT_EQ(LossScale(config, {64}), 512);
  config.loss_scale = 0;
  EXPECT_EQ(LossScale(config, {64}), 64);
}

}  // namespace
}  // namespace plumbline::optimized
