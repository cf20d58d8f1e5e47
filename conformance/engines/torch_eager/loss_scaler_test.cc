// SPDX-License-Identifier: Apache-2.0
// The dynamic loss scale against sequences worked out by hand from docs/semantics.md, "fp16". A step is written 's' for
// skipped or '.' for made; a scaler as {σ, k, l, h}.
#include "conformance/engines/torch_eager/loss_scaler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumbline::conformance::torch_eager {
namespace {

using contract::DynamicLossScale;
using contract::LossScaler;

void ExpectScalers(const DynamicLossScale& settings, LossScaler scaler, const std::string& steps,
                   const std::vector<LossScaler>& expected) {
  ASSERT_EQ(steps.size(), expected.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    scaler = AfterStep(settings, scaler, steps[i] == 's');
    EXPECT_EQ(scaler.scale, expected[i].scale) << i;
    EXPECT_EQ(scaler.steps, expected[i].steps) << i;
    EXPECT_EQ(scaler.last_overflow, expected[i].last_overflow) << i;
    EXPECT_EQ(scaler.hysteresis, expected[i].hysteresis) << i;
  }
}

// Before the first overflow l is -1, so a first window of three ends with step 2.
TEST(LossScaler, DoublesWhenAWindowOfStepsHadNoOverflow) {
  const DynamicLossScale settings = {.initial_scale_power = 3, .window = 3, .hysteresis = 1};
  ExpectScalers(settings, InitialLossScaler(settings), "......",
                {{8, 1, -1, 1}, {8, 2, -1, 1}, {16, 3, -1, 1}, {16, 4, -1, 1}, {16, 5, -1, 1}, {32, 6, -1, 1}});
}

// The overflow is in step 1, and steps 4 and 7 are three and six after it.
TEST(LossScaler, CountsTheWindowFromTheLastOverflow) {
  const DynamicLossScale settings = {.initial_scale_power = 3, .window = 3, .hysteresis = 1};
  ExpectScalers(settings, InitialLossScaler(settings), ".s......",
                {{8, 1, -1, 1},
                 {4, 2, 1, 1},
                 {4, 3, 1, 1},
                 {4, 4, 1, 1},
                 {8, 5, 1, 1},
                 {8, 6, 1, 1},
                 {8, 7, 1, 1},
                 {16, 8, 1, 1}});
}

TEST(LossScaler, DoublesInEveryStepOfAWindowOfOne) {
  ExpectScalers({.window = 1, .hysteresis = 1}, {1, 5, 4, 1}, "..", {{2, 6, 4, 1}, {4, 7, 4, 1}});
}

// Two overflows are borne, the third halves, and so does every one after it: h stays 1.
TEST(LossScaler, HalvesFromTheOverflowOnThatLeavesNone) {
  ExpectScalers({.window = 1000, .hysteresis = 3}, {64, 0, -1, 3}, "sss.s",
                {{64, 1, 0, 2}, {64, 2, 1, 1}, {32, 3, 2, 1}, {32, 4, 2, 1}, {16, 5, 4, 1}});
}

// A state may have more overflows left than settings of one allow.
TEST(LossScaler, HalvesAtOnceWithAHysteresisOfOneWhateverIsLeft) {
  ExpectScalers({.window = 1000, .hysteresis = 1}, {64, 7, 2, 4}, "s", {{32, 8, 7, 4}});
}

// The doubling of step 3 is a window after step 1.
TEST(LossScaler, ADoublingForgivesAllOverflows) {
  ExpectScalers({.window = 2, .hysteresis = 3}, {64, 0, -1, 3}, "ss..s",
                {{64, 1, 0, 2}, {64, 2, 1, 1}, {64, 3, 1, 1}, {128, 4, 1, 3}, {128, 5, 4, 2}});
}

TEST(LossScaler, EveryStepForgivesAllOverflowsWhereTheyMustBeConsecutive) {
  ExpectScalers({.window = 1000, .hysteresis = 2, .consecutive_hysteresis = true}, {64, 0, -1, 2}, "s.ss",
                {{64, 1, 0, 1}, {64, 2, 0, 2}, {64, 3, 2, 1}, {32, 4, 3, 1}});
}

TEST(LossScaler, StaysAtTheLeastAndComesUpToItFromBelow) {
  const DynamicLossScale settings = {.window = 1000, .hysteresis = 1, .min_scale = 16};
  ExpectScalers(settings, {64, 0, -1, 1}, "sss", {{32, 1, 0, 1}, {16, 2, 1, 1}, {16, 3, 2, 1}});
  ExpectScalers(settings, {2, 0, -1, 1}, "s", {{16, 1, 0, 1}});
}

// What a doubling forgives is forgiven all the same.
TEST(LossScaler, IsNeverAboveTwoToThe126th) {
  ExpectScalers({.window = 1, .hysteresis = 2}, {0x1p125, 9, 8, 1}, "..s.",
                {{0x1p126, 10, 8, 2}, {0x1p126, 11, 8, 2}, {0x1p126, 12, 11, 1}, {0x1p126, 13, 11, 2}});
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
