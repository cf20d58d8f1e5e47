// SPDX-License-Identifier: Apache-2.0
// Rates and betas that are worked by hand from docs/semantics.md, at the steps where a schedule changes its course.
#include "conformance/oracle/schedule_formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;
using contract::RunConfig;
using Kind = contract::Schedule::Kind;

double Lr(const RunConfig& config, int64_t step, size_t group = 0) { return ScheduledLr(config, step)[group].value; }

TEST(ScheduledLr, FollowsTheWarmup) {
  RunConfig config;
  config.params.lr = 1e-3;
  config.groups = {{"a", 2e-3, std::nullopt}, {"b", std::nullopt, 0.5}};
  config.schedule = {Kind::kWarmup, 1e-4, 1e-3, 8, true};
  EXPECT_DOUBLE_EQ(Lr(config, 0), 1e-4);
  EXPECT_DOUBLE_EQ(Lr(config, 1), 1e-4);
  EXPECT_DOUBLE_EQ(Lr(config, 2), 1e-4 + 9e-4 / 8);
  EXPECT_DOUBLE_EQ(Lr(config, 9), 1e-3);
  EXPECT_DOUBLE_EQ(Lr(config, 500, 1), 2e-3);
  EXPECT_DOUBLE_EQ(Lr(config, 500, 2), 1e-3);
  config.schedule.linear = false;
  EXPECT_DOUBLE_EQ(Lr(config, 4), 1e-4 + 9e-4 * std::log(4) / std::log(8));
  for (int64_t length : {0, 1, 2}) {
    config.schedule.warmup_num_steps = length;
    EXPECT_DOUBLE_EQ(Lr(config, 1), 1e-4) << length;
    EXPECT_DOUBLE_EQ(Lr(config, 3), 1e-3) << length;
  }
}

// N = 4, S = 10: k = s - 1 rises to 4 and falls over 6.
TEST(ScheduledLr, FallsInALineAfterTheWarmup) {
  RunConfig config;
  config.params.lr = 0.5;
  config.groups = {{"a", 1.0, std::nullopt}};
  config.schedule = {Kind::kWarmupDecay, 0.25, 1.25, 4, true, 10};
  EXPECT_EQ(Lr(config, 0), 0.25);
  EXPECT_EQ(Lr(config, 1), 0.25);
  EXPECT_EQ(Lr(config, 4), 0.25 + 3.0 / 4);
  EXPECT_EQ(Lr(config, 5), 1.25);            // k = 4: 6 of 6
  EXPECT_EQ(Lr(config, 8), 0.25 + 3.0 / 6);  // k = 7: 3 of 6
  EXPECT_EQ(Lr(config, 8, 1), 1.5);          // twice the optimizer's rate
  EXPECT_EQ(Lr(config, 11), 0.25);           // k = 10: nothing
  EXPECT_EQ(Lr(config, 99), 0.25);           // and never below
}

TEST(ScheduledLr, FallsAtOnceWhereTheWarmupIsLongerThanAllSteps) {
  RunConfig config;
  config.schedule = {Kind::kWarmupDecay, 0, 1, 4, true, 3};
  EXPECT_EQ(Lr(config, 4), 0.75);
  EXPECT_EQ(Lr(config, 5), 0);  // k = 4: max(0, (3 - 4) / 1)
}

// N = 2, S = 6, shares from 0.5 and down to 0.1.
TEST(ScheduledLr, FallsInACosineOfEachGroupsOwnRate) {
  RunConfig config;
  config.params.lr = 2;
  config.groups = {{"a", 8.0, std::nullopt}};
  config.schedule = {Kind::kWarmupCosine, 0, 1e-3, 2, true, 6, 0.5, 0.1};
  EXPECT_EQ(Lr(config, 0), 0) << "not even the least share";
  EXPECT_EQ(Lr(config, 1), 2 * 0.5);
  EXPECT_EQ(Lr(config, 2), 2 * 0.75);
  EXPECT_DOUBLE_EQ(Lr(config, 3), 2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2));  // k = 2: a quarter of the way already
  EXPECT_DOUBLE_EQ(Lr(config, 4), 2 * (0.1 + 0.9 / 2));
  EXPECT_DOUBLE_EQ(Lr(config, 4, 1), 8 * (0.1 + 0.9 / 2));
  EXPECT_DOUBLE_EQ(Lr(config, 6), 2 * 0.1);
  EXPECT_DOUBLE_EQ(Lr(config, 9), 2 * 0.1) << "does not rise again";
  config.schedule.total_num_steps = 1;
  EXPECT_DOUBLE_EQ(Lr(config, 3), 2 * 0.1) << "no step to fall in";
}

RunConfig Cycle() {
  RunConfig config;
  config.params.lr = 0.5;
  config.params.beta1 = 0.25;
  config.params.beta2 = 0.125;
  config.optimizer = OptimizerKind::kAdamW;
  config.groups = {{"a", 1.0, std::nullopt}};
  config.schedule.kind = Kind::kOneCycle;
  config.schedule.cycle.min_lr = 1;
  config.schedule.cycle.max_lr = 3;
  config.schedule.cycle.first_steps = 4;
  config.schedule.cycle.second_steps = 8;
  config.schedule.cycle.min_momentum = 0.5;
  config.schedule.cycle.max_momentum = 0.75;
  return config;
}

TEST(ScheduledLr, RisesAndFallsInACycle) {
  const RunConfig config = Cycle();
  const std::vector<double> rates = {1, 1.5, 2, 2.5, 3, 2.75, 2.5, 2.25, 2, 1.75, 1.5, 1.25, 1, 1, 1};
  for (size_t step = 0; step < rates.size(); ++step) {
    EXPECT_EQ(Lr(config, static_cast<int64_t>(step)), rates[step]) << step;
    EXPECT_EQ(Lr(config, static_cast<int64_t>(step), 1), 2 * rates[step]) << step;
  }
}

TEST(ScheduledLr, TakesStairsOfItsHalfOfTheCycle) {
  RunConfig config = Cycle();
  config.schedule.cycle.first_stairs = 2;
  config.schedule.cycle.second_stairs = 4;
  const std::vector<double> rates = {1, 1, 2, 2, 3, 2.5, 2.5, 2, 2, 1.5, 1.5, 1, 1, 1};
  for (size_t step = 0; step < rates.size(); ++step) {
    EXPECT_EQ(Lr(config, static_cast<int64_t>(step)), rates[step]) << step;
  }
}

// 3 of 10 steps and 10 stairs: in floating point 3 / 10 * 10 may be below 3.
TEST(ScheduledLr, CountsStairsInIntegers) {
  RunConfig config = Cycle();
  for (int64_t steps = 1; steps < 60; ++steps) {
    config.schedule.cycle.first_steps = steps;
    config.schedule.cycle.first_stairs = steps;
    for (int64_t step = 0; step <= steps; ++step) {
      EXPECT_DOUBLE_EQ(Lr(config, step), 1 + 2 * (static_cast<double>(step) / static_cast<double>(steps))) << step;
    }
  }
}

TEST(ScheduledLr, DecaysAfterTheCycle) {
  RunConfig config = Cycle();
  config.schedule.cycle.decay_lr_rate = 0.5;
  EXPECT_EQ(Lr(config, 20), 1) << "no decay without a size of its steps";
  config.schedule.cycle.decay_steps = 4;
  EXPECT_EQ(Lr(config, 12), 1);
  EXPECT_EQ(Lr(config, 13), 1 / (1 + 0.5 / 4));
  EXPECT_EQ(Lr(config, 20), 1 / (1 + 0.5 * 2));
}

TEST(ScheduledBetas, MoveAgainstTheRate) {
  const RunConfig config = Cycle();
  const std::vector<double> first = {0.5, 0.6875, 0.625, 0.5625, 0.5, 0.53125};  // step 0 begins with the least
  for (size_t step = 0; step < first.size(); ++step) {
    const Betas betas = ScheduledBetas(config, 0, static_cast<int64_t>(step));
    EXPECT_EQ(betas.first, first[step]) << step;
    EXPECT_EQ(betas.second, 0.99) << step;
  }
  EXPECT_EQ(ScheduledBetas(config, 0, 12).first, 0.75);
  EXPECT_EQ(ScheduledBetas(config, 0, 50).first, 0.75);
  EXPECT_EQ(ScheduledBetas(config, 0, 50).second, 0.99);
}

TEST(ScheduledBetas, StayWhereNothingMovesThem) {
  RunConfig config = Cycle();
  config.schedule.cycle.moves_momentum = false;
  EXPECT_EQ(ScheduledBetas(config, 0, 3).first, 0.25);
  EXPECT_EQ(ScheduledBetas(config, 0, 3).second, 0.125);
  config = Cycle();
  config.optimizer = OptimizerKind::kSgd;
  EXPECT_EQ(ScheduledBetas(config, 0, 3).first, 0.25);
  config = Cycle();
  config.schedule.kind = Kind::kWarmup;
  EXPECT_EQ(ScheduledBetas(config, 0, 3).second, 0.125);
}

// The same formulas in fp32 stay within the bounds, and an error that matters does not.
TEST(ScheduledLr, BoundsWhatFp32Loses) {
  RunConfig config;
  config.params.lr = 0.3;
  config.schedule = {Kind::kWarmupCosine, 0, 1e-3, 5, false, 57, 0.07, 0.03};
  double nearest = 0;
  for (int64_t step = 7; step < 70; ++step) {
    const float progress = std::min(1.0f, static_cast<float>(step - 5) / 52.0f);
    const float wave = (1.0f + std::cos(3.14159265f * progress)) / 2.0f;
    const float stored = 0.3f * (0.03f + (1.0f - 0.03f) * wave);
    const Bounded lr = ScheduledLr(config, step)[0];
    EXPECT_TRUE(lr.Holds(stored)) << step;
    EXPECT_FALSE(lr.Holds(lr.value * 1.0001 + 1e-5)) << step;
    nearest = std::max(nearest, std::abs(stored - lr.value) / lr.bound);
  }
  EXPECT_GT(nearest, 0.02) << "a bound that nothing comes near says nothing";
}

}  // namespace
}  // namespace plumbline::conformance
