// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizer/parameter_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

using contract::Schedule;

contract::RunConfig Config() {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kAdamW;
  config.params.lr = 0.5;
  config.params.weight_decay = 0.01;
  config.groups = {{"*.bias", std::nullopt, 0.0}, {"layers.0.*", 0.25, std::nullopt}, {"*norm?.weight", 2.0, 0.5}};
  return config;
}

TEST(GroupOf, IsTheFirstEntryWhosePatternFitsTheWholeName) {
  const contract::RunConfig config = Config();
  EXPECT_EQ(GroupOf(config, "layers.0.norm1.bias"), 1) << "fits the second entry too";
  EXPECT_EQ(GroupOf(config, "layers.0.norm1.weight"), 2) << "fits the third entry too";
  EXPECT_EQ(GroupOf(config, "layers.1.norm1.weight"), 3);
  EXPECT_EQ(GroupOf(config, "norm.weight"), 0);
  EXPECT_EQ(GroupOf(config, "embed.weight"), 0);
  EXPECT_EQ(GroupOf(config, "layers.10.mlp.up.weight"), 0);
  EXPECT_EQ(GroupOf(contract::RunConfig(), "embed.weight"), 0);
}

TEST(GroupWeightDecays, AreTheEntrysOrElseTheOptimizers) {
  EXPECT_EQ(GroupWeightDecays(Config()), (std::vector<double>{0.01, 0, 0.01, 0.5}));
}

TEST(GroupLearningRates, WithoutASchedulerAreConstant) {
  for (const int64_t step : {0, 1, 1000})
    EXPECT_EQ(GroupLearningRates(Config(), step), (std::vector<double>{0.5, 0.5, 0.25, 2}));
}

TEST(GroupLearningRates, WithWarmupKeepTheRatioOfAGroupsOwnRate) {
  contract::RunConfig config = Config();
  config.schedule = {Schedule::Kind::kWarmup, 0.125, 1.125, 4, true};
  EXPECT_EQ(GroupLearningRates(config, 0), (std::vector<double>{0.125, 0.125, 0.0625, 0.5}));
  EXPECT_EQ(GroupLearningRates(config, 3), (std::vector<double>{0.625, 0.625, 0.3125, 2.5}));
  EXPECT_EQ(GroupLearningRates(config, 5), (std::vector<double>{1.125, 1.125, 0.5625, 4.5}));
}

TEST(GroupLearningRates, RejectARatioToAnOptimizersRateOfZero) {
  contract::RunConfig config = Config();
  config.params.lr = 0;
  EXPECT_EQ(GroupLearningRates(config, 0), (std::vector<double>{0, 0, 0.25, 2})) << "no ratio without a schedule";
  config.schedule.kind = Schedule::Kind::kWarmup;
  EXPECT_THROW(GroupLearningRates(config, 0), contract::Error);
}

struct WarmupRow {
  int64_t num_steps;
  int64_t step;
  double linear;
  double logarithmic;
};

TEST(WarmupFactor, FollowsTheTableOfTheFormula) {
  const WarmupRow rows[] = {
      {4, 0, 0, 0},
      {4, 1, 0, 0},
      {4, 2, 0.25, 0.5},  // ln 2 / ln 4
      {4, 3, 0.5, std::log(3.0) / std::log(4.0)},
      {4, 4, 0.75, 1},  // ln 4 / ln 4, one step before the linear one
      {4, 5, 1, 1},
      {4, 1'000'000'000, 1, 1},
      {10, 10, 0.9, 1},
      {10, 11, 1, 1},
      {2, 2, 0.5, 1},
      {2, 3, 1, 1},
  };
  for (const WarmupRow& row : rows) {
    SCOPED_TRACE(testing::Message() << "N " << row.num_steps << ", step " << row.step);
    EXPECT_NEAR(WarmupFactor({Schedule::Kind::kWarmup, 0, 1, row.num_steps, true}, row.step), row.linear, 1e-15);
    EXPECT_NEAR(WarmupFactor({Schedule::Kind::kWarmup, 0, 1, row.num_steps, false}, row.step), row.logarithmic, 1e-15);
  }
}

TEST(WarmupFactor, TakesFewerThanTwoStepsForTwo) {
  for (const int64_t num_steps : {0, 1}) {
    for (const bool linear : {true, false}) {
      for (int64_t step = 0; step < 5; ++step)
        EXPECT_EQ(WarmupFactor({Schedule::Kind::kWarmup, 0, 1, num_steps, linear}, step),
                  WarmupFactor({Schedule::Kind::kWarmup, 0, 1, 2, linear}, step));
    }
  }
}

}  // namespace
}  // namespace plumbline::reference
