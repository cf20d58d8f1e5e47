// SPDX-License-Identifier: Apache-2.0
// Groups and learning rates against numbers worked out by hand from docs/semantics.md.
#include "conformance/engines/torch_eager/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::conformance::torch_eager {
namespace {

contract::RunConfig WithGroups() {
  contract::RunConfig config;
  config.params.lr = 0.5;
  config.params.weight_decay = 0.25;
  config.groups = {{"*.bias", 0.125, 0.0}, {"layers.1.*", std::nullopt, 0.75}, {"*norm*", 1.0, std::nullopt}};
  return config;
}

TEST(Schedule, TheFirstGroupThatMatchesCounts) {
  const contract::RunConfig config = WithGroups();
  EXPECT_EQ(GroupOf(config, "embed.weight"), 0);
  EXPECT_EQ(GroupOf(config, "layers.1.norm1.bias"), 1);
  EXPECT_EQ(GroupOf(config, "layers.1.norm1.weight"), 2);
  EXPECT_EQ(GroupOf(config, "norm.weight"), 3);
}

TEST(Schedule, WhatAGroupDoesNotSetIsTheOptimizers) {
  const contract::RunConfig config = WithGroups();
  EXPECT_EQ(LearningRates(config, 7), (std::vector<double>{0.5, 0.125, 0.5, 1.0}));
  EXPECT_EQ(WeightDecayOf(config, 0), 0.25);
  EXPECT_EQ(WeightDecayOf(config, 1), 0);
  EXPECT_EQ(WeightDecayOf(config, 2), 0.75);
  EXPECT_EQ(WeightDecayOf(config, 3), 0.25);
}

TEST(Schedule, LinearWarmupStaysAtTheMinimumForTwoStepsAndScalesGroups) {
  contract::RunConfig config = WithGroups();
  config.schedule = {contract::Schedule::Kind::kWarmup, 0.25, 1.25, 4, true};
  const std::vector<double> expected = {0.25, 0.25, 0.5, 0.75, 1.0, 1.25, 1.25};
  for (size_t s = 0; s < expected.size(); ++s) {
    const std::vector<double> rates = LearningRates(config, static_cast<int64_t>(s));
    EXPECT_EQ(rates, (std::vector<double>{expected[s], expected[s] / 4, expected[s], expected[s] * 2})) << s;
  }
}

TEST(Schedule, LogarithmicWarmupHasAtLeastTwoSteps) {
  contract::RunConfig config;
  config.schedule = {contract::Schedule::Kind::kWarmup, 0, 2, 8, false};
  EXPECT_DOUBLE_EQ(LearningRates(config, 1)[0], 0);
  EXPECT_DOUBLE_EQ(LearningRates(config, 2)[0], 2.0 / 3);  // ln 2 / ln 8
  EXPECT_DOUBLE_EQ(LearningRates(config, 4)[0], 4.0 / 3);
  EXPECT_DOUBLE_EQ(LearningRates(config, 9)[0], 2);
  config.schedule.warmup_num_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRates(config, 1)[0], 0);
  EXPECT_DOUBLE_EQ(LearningRates(config, 2)[0], 2);
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
