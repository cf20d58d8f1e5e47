// SPDX-License-Identifier: Apache-2.0
// OneCycle's rates and betas against numbers worked out by hand from docs/semantics.md.
#include <gtest/gtest.h>

#include <vector>

#include "conformance/engines/torch_eager/schedule.h"

namespace plumbline::conformance::torch_eager {
namespace {

using Kind = contract::Schedule::Kind;

void ExpectRates(const contract::RunConfig& config, const std::vector<double>& expected) {
  for (size_t s = 0; s < expected.size(); ++s) {
    EXPECT_DOUBLE_EQ(LearningRates(config, static_cast<int64_t>(s))[0], expected[s]) << "step " << s;
  }
}

// Of the second beta and of groups every step says the same: 0.99, and no difference.
void ExpectBeta1(const contract::RunConfig& config, const std::vector<double>& expected) {
  for (size_t s = 0; s < expected.size(); ++s) {
    const std::vector<Betas> betas = BetasAt(config, static_cast<int64_t>(s));
    ASSERT_EQ(betas.size(), config.groups.size() + 1) << "step " << s;
    EXPECT_DOUBLE_EQ(betas[0].beta1, expected[s]) << "step " << s;
    EXPECT_EQ(betas[0].beta2, 0.99) << "step " << s;
    for (const Betas& of_group : betas) EXPECT_EQ(of_group, betas[0]) << "step " << s;
  }
}

// From 1/4 to 5/4 in F = 4 steps and back in G = 2; beta1 from 3/4 to 1/2 and back.
contract::RunConfig Config() {
  contract::RunConfig config;
  config.params.lr = 0.5;
  config.groups = {{"*.bias", 0.125, 0.0}, {"layers.1.*", std::nullopt, 0.75}, {"*norm*", 1.0, std::nullopt}};
  config.params.beta1 = 0.9;
  config.params.beta2 = 0.95;
  config.schedule.kind = Kind::kOneCycle;
  config.schedule.cycle = {.min_lr = 0.25,
                           .max_lr = 1.25,
                           .decay_lr_rate = 1,
                           .first_steps = 4,
                           .second_steps = 2,
                           .decay_steps = 2,
                           .min_momentum = 0.5,
                           .max_momentum = 0.75};
  config.groups[1].betas = {0.25, 0.5};
  return config;
}

// sigma: 0, 1/4, 2/4, 3/4, 4/4, (6 - 5) / 2, and 0 at s = 6, whose c is 0. Then 1/4 / (1 + (s - 6) / 2).
TEST(OneCycle, RisesFallsAndDecaysAndScalesGroups) {
  const contract::RunConfig config = Config();
  const std::vector<double> expected = {0.25, 0.5, 0.75, 1.0, 1.25, 0.75, 0.25, 0.25 / 1.5, 0.125, 0.25 / 2.5};
  ExpectRates(config, expected);
  for (size_t s = 0; s < expected.size(); ++s) {
    const std::vector<double> rates = LearningRates(config, static_cast<int64_t>(s));
    EXPECT_EQ(rates, (std::vector<double>{rates[0], rates[0] / 4, rates[0], rates[0] * 2})) << s;
  }
  EXPECT_DOUBLE_EQ(LearningRates(config, 6 + 2'000'000)[0], 0.25 / 1'000'001);
}

TEST(OneCycle, WithoutDecayStaysAtTheMinimum) {
  contract::RunConfig steps = Config(), rate = Config();
  steps.schedule.cycle.decay_steps = 0;
  rate.schedule.cycle.decay_lr_rate = 0;
  for (const contract::RunConfig& config : {steps, rate}) {
    ExpectRates(config, {0.25, 0.5, 0.75, 1.0, 1.25, 0.75, 0.25, 0.25, 0.25});
    EXPECT_EQ(LearningRates(config, 1'000'000)[0], 0.25);
  }
}

TEST(OneCycle, OfOneStepUpAndThreeDown) {
  contract::RunConfig config = Config();
  config.schedule.cycle.first_steps = 1;
  config.schedule.cycle.second_steps = 3;  // sigma: 0, 1, (4 - 2) / 3, (4 - 3) / 3, 0
  ExpectRates(config, {0.25, 1.25, 0.25 + 2.0 / 3, 0.25 + 1.0 / 3, 0.25, 0.25 / 1.5});
  config.schedule.cycle.second_steps = 1;
  ExpectRates(config, {0.25, 1.25, 0.25, 0.25 / 1.5});
}

// 3/4 - sigma / 4, but 1/2 in step 0, and 3/4 after the cycle.
TEST(OneCycle, MovesBeta1AgainstTheRate) {
  ExpectBeta1(Config(), {0.5, 0.6875, 0.625, 0.5625, 0.5, 0.625, 0.75, 0.75, 0.75});
}

TEST(OneCycle, WithoutCycleMomentumTheBetasAreThoseOfGroupsElseTheOptimizers) {
  contract::RunConfig config = Config();
  const std::vector<Betas> own = {{0.9, 0.95}, {0.9, 0.95}, {0.25, 0.5}, {0.9, 0.95}};
  config.schedule.cycle.moves_momentum = false;
  for (const int64_t step : {0, 1, 4, 6, 7}) EXPECT_EQ(BetasAt(config, step), own) << step;
  ExpectRates(config, {0.25, 0.5, 0.75});
  config.schedule.cycle.moves_momentum = true;
  for (const Kind kind : {Kind::kConstant, Kind::kWarmup, Kind::kWarmupDecay, Kind::kWarmupCosine}) {
    config.schedule.kind = kind;
    for (const int64_t step : {0, 1, 7}) EXPECT_EQ(BetasAt(config, step), own) << step;
  }
}

// F = 4 with 2 stairs: floor(2 (0, 1/4, 2/4, 3/4, 4/4)) / 2. G = 5 with 3: floor(3 (4/5, 3/5, 2/5, 1/5)) / 3.
TEST(OneCycle, OnStairs) {
  contract::RunConfig config = Config();
  config.schedule.cycle.second_steps = 5;
  config.schedule.cycle.first_stairs = 2;
  config.schedule.cycle.second_stairs = 3;
  const double third = 1.0 / 3;
  ExpectRates(config, {0.25, 0.25, 0.75, 0.75, 1.25, 0.25 + 2 * third, 0.25 + third, 0.25 + third, 0.25, 0.25});
  ExpectBeta1(config, {0.5, 0.75, 0.625, 0.625, 0.5, 0.75 - third / 2, 0.75 - third / 4, 0.75 - third / 4, 0.75, 0.75});
  config.schedule.cycle.first_stairs = 0;  // one half alone
  ExpectRates(config, {0.25, 0.5, 0.75, 1.0, 1.25, 0.25 + 2 * third});
  config.schedule.cycle.first_stairs = 1;
  config.schedule.cycle.second_stairs = 0;
  ExpectRates(config, {0.25, 0.25, 0.25, 0.25, 1.25, 1.05, 0.85, 0.65, 0.45, 0.25});
}

// In fp64 49 (1 / 49) is below 1: rounding would lose the stair.
TEST(OneCycle, StairsAreThoseOfTheExactShare) {
  ASSERT_LT(49 * (1 / 49.0), 1);
  contract::RunConfig config = Config();
  config.schedule.cycle.first_steps = config.schedule.cycle.second_steps = 49;
  config.schedule.cycle.first_stairs = config.schedule.cycle.second_stairs = 49;
  EXPECT_DOUBLE_EQ(LearningRates(config, 1)[0], 0.25 + 1 / 49.0);
  EXPECT_DOUBLE_EQ(LearningRates(config, 97)[0], 0.25 + 1 / 49.0);
}

TEST(OneCycle, CountsMayBeAsLargeAsTheContractHasThem) {
  constexpr int64_t kMost = int64_t{1} << 40;
  contract::RunConfig config = Config();
  config.schedule.cycle.first_steps = config.schedule.cycle.second_steps = kMost;
  config.schedule.cycle.first_stairs = config.schedule.cycle.second_stairs = kMost;
  EXPECT_DOUBLE_EQ(LearningRates(config, kMost / 2)[0], 0.75);
  EXPECT_DOUBLE_EQ(LearningRates(config, kMost)[0], 1.25);
  EXPECT_DOUBLE_EQ(LearningRates(config, kMost + kMost / 4)[0], 1.0);
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
