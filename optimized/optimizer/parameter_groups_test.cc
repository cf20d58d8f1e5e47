// SPDX-License-Identifier: Apache-2.0
// First match wins, defaults fill what an entry leaves out, both warm-ups at their borders, clipping on both sides.
#include "optimized/optimizer/parameter_groups.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

contract::RunConfig Config() {
  contract::RunConfig config;
  config.params.lr = 0.1;
  config.params.weight_decay = 0.01;
  config.groups = {{"*.bias", std::nullopt, 0.0}, {"*norm*", 0.3, std::nullopt}, {"layers.0.*", 0.2, 0.5}};
  return config;
}

TEST(ParameterGroups, TheFirstEntryThatFitsCountsAndDefaultsFillTheRest) {
  const struct {
    const char* name;
    double lr, weight_decay;
  } cases[] = {{"embed.weight", 0.1, 0.01},           {"layers.0.norm1.bias", 0.1, 0},
               {"layers.0.norm1.weight", 0.3, 0.01},  {"layers.0.mlp.up.weight", 0.2, 0.5},
               {"layers.1.mlp.up.weight", 0.1, 0.01}, {"norm.weight", 0.3, 0.01}};
  for (const auto& [name, lr, weight_decay] : cases) {
    const GroupOptions options = OptionsOf(Config(), name);
    EXPECT_EQ(options.lr, lr) << name;
    EXPECT_EQ(options.weight_decay, weight_decay) << name;
  }
}

TEST(ParameterGroups, WithoutAScheduleTheRateIsConstant) {
  for (const int64_t step : {0, 1, 1000}) EXPECT_EQ(LearningRate(Config(), 0.3, step), 0.3);
}

TEST(ParameterGroups, WarmupStartsAtMinInStepsZeroAndOneAndEndsAtMax) {
  contract::RunConfig config = Config();
  config.schedule = {contract::Schedule::Kind::kWarmup, 0.01, 0.05, 4, true};
  const double linear[] = {0.01, 0.01, 0.02, 0.03, 0.04, 0.05, 0.05};
  for (int64_t step = 0; step < 7; ++step) EXPECT_NEAR(LearningRate(config, 0.1, step), linear[step], 1e-15);
  config.schedule.linear = false;
  const double logs[] = {0, 0, std::log(2) / std::log(4), std::log(3) / std::log(4), 1, 1};
  for (int64_t step = 0; step < 6; ++step) {
    EXPECT_NEAR(LearningRate(config, 0.1, step), 0.01 + 0.04 * logs[step], 1e-15);
  }
}

TEST(ParameterGroups, WarmupOfLengthZeroOrOneIsOneOfLengthTwo) {
  for (const bool linear : {false, true}) {
    for (const int64_t length : {0, 1, 2}) {
      contract::RunConfig config = Config();
      config.schedule = {contract::Schedule::Kind::kWarmup, 0, 1, length, linear};
      EXPECT_EQ(LearningRate(config, 0.1, 1), 0);
      EXPECT_EQ(LearningRate(config, 0.1, 2), linear ? 0.5 : 1);
      EXPECT_EQ(LearningRate(config, 0.1, 3), 1);
    }
  }
}

TEST(ParameterGroups, AGroupKeepsItsShareOfTheScheduledRate) {
  contract::RunConfig config = Config();
  config.schedule = {contract::Schedule::Kind::kWarmup, 0, 1, 4, true};
  EXPECT_NEAR(LearningRate(config, 0.3, 3), 1.5, 1e-15);
  config.params.lr = 0;
  EXPECT_EQ(LearningRate(config, 0, 3), 0.5);
  EXPECT_THROW(LearningRate(config, 0.3, 3), contract::Error);
}

TEST(ParameterGroups, ClippingScalesOnlyNormsAboveTheThreshold) {
  EXPECT_EQ(ClipCoefficient(0, 100), 1);
  EXPECT_EQ(ClipCoefficient(1, 0.5), 1);
  EXPECT_EQ(ClipCoefficient(1, 0), 1);
  EXPECT_EQ(ClipCoefficient(1, 4), 1 / (4 + 1e-6));
  EXPECT_LT(ClipCoefficient(1, 1), 1);  // the epsilon counts
}

}  // namespace
}  // namespace plumbline::optimized
