// SPDX-License-Identifier: Apache-2.0
// Rates and betas step by step, worked out from docs/semantics.md by hand: the arithmetic stands beside each table. All
// tables begin with step 0, in which k is -1.
#include "optimized/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using contract::Schedule;
using Kind = Schedule::Kind;
using Values = std::vector<double>;

constexpr double kOwnLr = 0.1;                      // of the optimizer, and so of a group that sets none
constexpr contract::BetaPair kOwnBetas{0.7, 0.95};  // of a group; the config has the defaults
constexpr int64_t kLongAfter = 1'000'000;

contract::RunConfig With(const Schedule& schedule) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kAdamW;
  config.params.lr = kOwnLr;
  config.schedule = schedule;
  return config;
}

void ExpectRates(const Schedule& schedule, const Values& expected, double long_after) {
  const contract::RunConfig config = With(schedule);
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(LearningRate(config, kOwnLr, step), expected[step], 1e-15) << "step " << step;
  }
  EXPECT_NEAR(LearningRate(config, kOwnLr, kLongAfter), long_after, 1e-15);
}

// From 0.01 to 0.05: the rate is 0.01 + 0.04 gamma.
Schedule Warmup(Kind kind, int64_t length, int64_t total, bool linear = true) {
  Schedule schedule;
  schedule.kind = kind;
  schedule.warmup_min_lr = 0.01;
  schedule.warmup_max_lr = 0.05;
  schedule.warmup_num_steps = length;
  schedule.total_num_steps = total;
  schedule.linear = linear;
  return schedule;
}

TEST(Schedule, WithoutOneTheRateIsTheGroupsAndConstant) {
  for (const int64_t step : {0, 1, 1000}) EXPECT_EQ(LearningRate(With({}), 0.3, step), 0.3);
}

// gamma for N = 4, k = -1, 0, ...: 0, 0/4, 1/4, 2/4, 3/4, 1, 1.
TEST(Schedule, WarmupStartsAtMinInStepsZeroAndOneAndEndsAtMax) {
  ExpectRates(Warmup(Kind::kWarmup, 4, 0), {0.01, 0.01, 0.02, 0.03, 0.04, 0.05, 0.05}, 0.05);
}

// gamma: 0, ln 1 / ln 4 = 0, ln 2 / ln 4 = 1/2, ln 3 / ln 4 = 0.792481250360578, ln 4 / ln 4 = 1, 1, 1.
TEST(Schedule, LogarithmicWarmupIsAtMaxOneStepBeforeItsEnd) {
  const Values rates = {0.01, 0.01, 0.03, 0.01 + 0.04 * 0.792481250360578, 0.05, 0.05, 0.05};
  ExpectRates(Warmup(Kind::kWarmup, 4, 0, false), rates, 0.05);
}

// N = 2. gamma for k = -1, 0, 1, 2: 0, 0/2, 1/2, 1; with logarithms ln 2 / ln 2 = 1 at k = 1.
TEST(Schedule, WarmupOfLengthZeroOrOneIsOneOfLengthTwo) {
  for (const int64_t length : {0, 1, 2}) {
    ExpectRates(Warmup(Kind::kWarmup, length, 0), {0.01, 0.01, 0.03, 0.05, 0.05}, 0.05);
    ExpectRates(Warmup(Kind::kWarmup, length, 0, false), {0.01, 0.01, 0.05, 0.05, 0.05}, 0.05);
  }
}

// N = 4, S = 9, S - N = 5. gamma up to k = 3 (step 4 = N) as above, then (9 - k) / 5: k = 4 (step 5 = N + 1): 1, then
// 4/5, 3/5, 2/5, k = 8 (step 9 = S): 1/5, k = 9: 0, and never below.
TEST(Schedule, WarmupDecayFallsFromMaxToMinInTheStepAfterTheTotal) {
  ExpectRates(Warmup(Kind::kWarmupDecay, 4, 9),
              {0.01, 0.01, 0.02, 0.03, 0.04, 0.05, 0.042, 0.034, 0.026, 0.018, 0.01, 0.01}, 0.01);
  ExpectRates(Warmup(Kind::kWarmupDecay, 4, 9, false),
              {0.01, 0.01, 0.03, 0.01 + 0.04 * 0.792481250360578, 0.05, 0.05, 0.042, 0.034, 0.026, 0.018, 0.01, 0.01},
              0.01);
}

// S <= N: the warm-up is not cut short, and k = N gives (S - N) / max(1, S - N) <= 0. S = N + 1: one step at max.
TEST(Schedule, WarmupDecayWithATotalWithinTheWarmupFallsToMinAtItsEnd) {
  for (const int64_t total : {0, 2, 3, 4}) {
    ExpectRates(Warmup(Kind::kWarmupDecay, 4, total), {0.01, 0.01, 0.02, 0.03, 0.04, 0.01, 0.01}, 0.01);
  }
  ExpectRates(Warmup(Kind::kWarmupDecay, 4, 5), {0.01, 0.01, 0.02, 0.03, 0.04, 0.05, 0.01}, 0.01);
}

// N = 2, S = 4. gamma for k = 0 ... 4: 0, 1/2 (logarithmic 1), (4 - 2) / 2 = 1, 1/2, 0.
TEST(Schedule, WarmupDecayOfLengthZeroOrOneIsOneOfLengthTwo) {
  for (const int64_t length : {0, 1, 2}) {
    ExpectRates(Warmup(Kind::kWarmupDecay, length, 4), {0.01, 0.01, 0.03, 0.05, 0.03, 0.01}, 0.01);
    ExpectRates(Warmup(Kind::kWarmupDecay, length, 4, false), {0.01, 0.01, 0.05, 0.05, 0.03, 0.01}, 0.01);
  }
}

// Shares of the group's own rate, here 0.1: r = 0.2, c = 0.1.
Schedule Cosine(int64_t length, int64_t total, bool linear = true) {
  Schedule schedule = Warmup(Kind::kWarmupCosine, length, total, linear);
  schedule.warmup_min_ratio = 0.2;
  schedule.cos_min_ratio = 0.1;
  return schedule;
}

// The cosine's part of rho where cos is that of pi/4, and of 3 pi/4: 0.1 + 0.9 (1 +- 0.7071067811865476) / 2.
constexpr double kEarly = 0.1 + 0.9 * 0.8535533905932738;
constexpr double kLate = 0.1 + 0.9 * 0.1464466094067262;

// N = 4, S = 8. rho for k = -1: 0; k = 0 ... 3: 0.2 + 0.8 k / 4; then progress (k - 3) / 4: k = 4 (step 5 = N + 1) 1/4,
// k = 5 1/2, where rho is 0.1 + 0.9 / 2, k = 6 3/4, k = 7 (step 8 = S) 1 and k = 8 5/4, which counts as 1: 0.1.
TEST(Schedule, WarmupCosineIsZeroInStepZeroAndEndsInTheLastStep) {
  ExpectRates(Cosine(4, 8), {0, 0.02, 0.04, 0.06, 0.08, 0.1 * kEarly, 0.055, 0.1 * kLate, 0.01, 0.01}, 0.01);
  const double at_ln3 = 0.1 * (0.2 + 0.8 * 0.792481250360578);
  ExpectRates(Cosine(4, 8, false), {0, 0.02, 0.06, at_ln3, 0.1, 0.1 * kEarly, 0.055, 0.1 * kLate, 0.01, 0.01}, 0.01);
}

// S <= N + 1: k = N has the progress 1 / max(1, S - N) = 1. S = N + 2: one step of progress 1/2, rho 0.55, before it.
TEST(Schedule, WarmupCosineWithATotalWithinTheWarmupEndsWithIt) {
  for (const int64_t total : {0, 3, 4, 5}) ExpectRates(Cosine(4, total), {0, 0.02, 0.04, 0.06, 0.08, 0.01}, 0.01);
  ExpectRates(Cosine(4, 6), {0, 0.02, 0.04, 0.06, 0.08, 0.055, 0.01}, 0.01);
}

// N = 2, S = 6. rho for k = 0, 1: 0.2, 0.2 + 0.8 / 2 (logarithmic 1); then progress 1/4, 1/2, 3/4, 1.
TEST(Schedule, WarmupCosineOfLengthZeroOrOneIsOneOfLengthTwo) {
  for (const int64_t length : {0, 1, 2}) {
    ExpectRates(Cosine(length, 6), {0, 0.02, 0.06, 0.1 * kEarly, 0.055, 0.1 * kLate, 0.01}, 0.01);
    ExpectRates(Cosine(length, 6, false), {0, 0.02, 0.1, 0.1 * kEarly, 0.055, 0.1 * kLate, 0.01}, 0.01);
  }
}

// r = 2, c = 3: rho falls to 1 as 2 - k / 4, and the cosine raises it: 3 - 2 (1 + cos) / 2, at progress 1/2 to 2.
TEST(Schedule, WarmupCosineTakesSharesAboveOne) {
  Schedule schedule = Cosine(4, 8);
  schedule.warmup_min_ratio = 2;
  schedule.cos_min_ratio = 3;
  const double early = 3 - 2 * 0.8535533905932738, late = 3 - 2 * 0.1464466094067262;
  ExpectRates(schedule, {0, 0.2, 0.175, 0.15, 0.125, 0.1 * early, 0.2, 0.1 * late, 0.3, 0.3}, 0.3);
}

// From 0.1 to 0.5: the rate is 0.1 + 0.4 sigma. After the cycle 0.1 / (1 + 0.5 (s - F - G) / 2).
Schedule OneCycle(int64_t first_steps, int64_t second_steps) {
  Schedule schedule;
  schedule.kind = Kind::kOneCycle;
  schedule.cycle = {.min_lr = 0.1,
                    .max_lr = 0.5,
                    .decay_lr_rate = 0.5,
                    .first_steps = first_steps,
                    .second_steps = second_steps,
                    .decay_steps = 2};
  return schedule;
}

// F = 4, G = 2. sigma for s = 0 ... 4: s / 4; s = 5: (6 - 5) / 2 = 1/2; s = 6: k = 5 < 6 is in the cycle still, c = 0.
// Then 0.1 / 1.25 (s = 7), 0.1 / 1.5, 0.1 / 1.75, 0.1 / 2; s = 10^6: 0.1 / (1 + 0.25 * 999994).
TEST(Schedule, OneCycleRisesFallsAndDecays) {
  ExpectRates(OneCycle(4, 2), {0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.1, 0.08, 0.1 / 1.5, 0.1 / 1.75, 0.05}, 0.1 / 249999.5);
}

// F = 1, G = 3: sigma 0, 1, 2/3, 1/3, 0. F = G = 1: 0, 1, 0.
TEST(Schedule, OneCycleOfTheShortestHalves) {
  ExpectRates(OneCycle(1, 3), {0.1, 0.5, 0.1 + 0.8 / 3, 0.1 + 0.4 / 3, 0.1, 0.08}, 0.1 / 250000);
  ExpectRates(OneCycle(1, 1), {0.1, 0.5, 0.1, 0.08, 0.1 / 1.5}, 0.1 / 250000.5);
}

TEST(Schedule, OneCycleWithoutDecayStaysAtMin) {
  for (const bool has_steps : {false, true}) {
    Schedule schedule = OneCycle(4, 2);
    if (has_steps) {
      schedule.cycle.decay_lr_rate = 0;
    } else {
      schedule.cycle.decay_steps = 0;
    }
    ExpectRates(schedule, {0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.1, 0.1, 0.1}, 0.1);
  }
}

// F = 6 with 3 stairs: floor(c / 2) / 3 for c = 0 ... 6. G = 4 with 2: floor((10 - c) / 2) / 2 for c = 7, 8, 9.
TEST(Schedule, OneCycleClimbsTheStairsOfEachHalf) {
  Schedule schedule = OneCycle(6, 4);
  schedule.cycle.decay_steps = 0;
  const double third = 0.1 + 0.4 / 3, two_thirds = 0.1 + 0.8 / 3;
  schedule.cycle.first_stairs = 3;
  ExpectRates(schedule, {0.1, 0.1, third, third, two_thirds, two_thirds, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1}, 0.1);
  schedule.cycle.second_stairs = 2;
  ExpectRates(schedule, {0.1, 0.1, third, third, two_thirds, two_thirds, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1}, 0.1);
  schedule.cycle.first_stairs = 0;
  ExpectRates(schedule, {0.1, 0.1 + 0.4 / 6, third, 0.3, two_thirds, 0.1 + 2.0 / 6, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1}, 0.1);
}

// F = 3, n = 5: floor(5 c / 3) / 5 = 0, 1/5, 3/5, 1. G = 2, n = 1: floor(1/2) = 0.
TEST(Schedule, OneCycleMayHaveMoreStairsThanSteps) {
  Schedule schedule = OneCycle(3, 2);
  schedule.cycle.first_stairs = 5;
  schedule.cycle.second_stairs = 1;
  ExpectRates(schedule, {0.1, 0.18, 0.34, 0.5, 0.1, 0.1, 0.08}, 0.1 / (1 + 0.25 * 999995));
}

// n = F: sigma stays c / F, though 49 * (1.0 / 49) is below 1. With n = F = 2^40 their product is 2^79 halfway up.
TEST(Schedule, StairsAreFloorsOfTheExactShare) {
  ASSERT_LT(49 * (1.0 / 49), 1);
  Schedule schedule = OneCycle(49, 49);
  schedule.cycle.first_stairs = schedule.cycle.second_stairs = 49;
  for (int64_t step = 0; step <= 98; ++step) {
    const double sigma = static_cast<double>(step <= 49 ? step : 98 - step) / 49;
    EXPECT_NEAR(LearningRate(With(schedule), kOwnLr, step), 0.1 + 0.4 * sigma, 1e-15) << step;
  }
  constexpr int64_t kMost = int64_t{1} << 40;
  schedule = OneCycle(kMost, kMost);
  schedule.cycle.first_stairs = schedule.cycle.second_stairs = kMost;
  EXPECT_NEAR(LearningRate(With(schedule), kOwnLr, kMost / 2), 0.3, 1e-15);
  EXPECT_NEAR(LearningRate(With(schedule), kOwnLr, kMost), 0.5, 1e-15);
  EXPECT_NEAR(LearningRate(With(schedule), kOwnLr, kMost + kMost / 4), 0.4, 1e-15);
}

// In step 3: warm-up 0.03; OneCycle 0.4. A group of 0.3 beside an optimizer of 0.1 has three times that.
TEST(Schedule, AGroupKeepsItsShareOfARateForAll) {
  const struct {
    Schedule schedule;
    double rate;
  } cases[] = {{Warmup(Kind::kWarmup, 4, 0), 0.03}, {Warmup(Kind::kWarmupDecay, 4, 9), 0.03}, {OneCycle(4, 2), 0.4}};
  for (const auto& [schedule, rate] : cases) {
    contract::RunConfig config = With(schedule);
    EXPECT_NEAR(LearningRate(config, 0.3, 3), 3 * rate, 1e-15);
    EXPECT_EQ(LearningRate(config, 0, 3), 0);
    config.params.lr = 0;
    EXPECT_NEAR(LearningRate(config, 0, 3), rate, 1e-15);
  }
}

// In step 3: rho = 0.6. What the optimizer's rate is does not matter.
TEST(Schedule, WarmupCosineScalesTheGroupsOwnRate) {
  contract::RunConfig config = With(Cosine(4, 8));
  for (const double lr : {0.1, 0.0}) {
    config.params.lr = lr;
    EXPECT_NEAR(LearningRate(config, 0.3, 3), 0.18, 1e-15);
    EXPECT_EQ(LearningRate(config, 0, 3), 0);
    EXPECT_EQ(LearningRate(config, 0.3, 0), 0);
  }
}

void ExpectBeta1(const Schedule& schedule, const Values& expected, double long_after) {
  const contract::RunConfig config = With(schedule);
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(BetasOf(config, kOwnBetas, step).first, expected[step], 1e-15) << "step " << step;
    EXPECT_EQ(BetasOf(config, kOwnBetas, step).second, 0.99);
  }
  EXPECT_NEAR(BetasOf(config, kOwnBetas, kLongAfter).first, long_after, 1e-15);
  EXPECT_EQ(BetasOf(config, kOwnBetas, kLongAfter).second, 0.99);
}

// F = 4, G = 2: min in step 0, though sigma is 0; 0.9 - 0.3 sigma with sigma = 1/4, 1/2, 3/4, 1, 1/2, 0 (step 6), then
// max. The decay of the rate moves no beta.
TEST(Schedule, OneCycleMovesBeta1AgainstTheRateAndSetsBeta2) {
  Schedule schedule = OneCycle(4, 2);
  schedule.cycle.min_momentum = 0.6;
  schedule.cycle.max_momentum = 0.9;
  ExpectBeta1(schedule, {0.6, 0.825, 0.75, 0.675, 0.6, 0.75, 0.9, 0.9, 0.9}, 0.9);
  schedule.cycle.first_stairs = 2;  // sigma = floor(s / 2) / 2
  ExpectBeta1(schedule, {0.6, 0.9, 0.75, 0.75, 0.6, 0.75, 0.9, 0.9}, 0.9);
  schedule.cycle.min_momentum = 0.9;  // from 0.6 up: 0.6 + 0.3 sigma
  schedule.cycle.max_momentum = 0.6;
  schedule.cycle.first_stairs = 0;
  ExpectBeta1(schedule, {0.9, 0.675, 0.75, 0.825, 0.9, 0.75, 0.6, 0.6}, 0.6);
}

TEST(Schedule, BetasAreTheGroupsOwnWhereNothingMovesThem) {
  Schedule still = OneCycle(4, 2);
  still.cycle.moves_momentum = false;
  for (const Schedule& schedule :
       {Schedule{}, Warmup(Kind::kWarmup, 4, 0), Warmup(Kind::kWarmupDecay, 4, 9), Cosine(4, 8), still}) {
    for (const int64_t step : {0, 1, 3, 6, 7, 100}) {
      EXPECT_EQ(BetasOf(With(schedule), kOwnBetas, step), kOwnBetas);
    }
  }
}

TEST(Schedule, AKindThatIsNotKnownIsUnsupported) {
  for (const int kind : {-1, 5, 100}) {
    Schedule schedule = OneCycle(4, 2);
    schedule.kind = static_cast<Kind>(kind);
    const contract::RunConfig config = With(schedule);
    for (const auto& ask : {+[](const contract::RunConfig& c) { LearningRate(c, kOwnLr, 3); },
                            +[](const contract::RunConfig& c) { BetasOf(c, kOwnBetas, 3); }}) {
      try {
        ask(config);
        ADD_FAILURE() << "was not refused: " << kind;
      } catch (const contract::Error& error) {
        EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported);
        EXPECT_NE(std::string(error.what()).find(std::to_string(kind)), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::optimized
