// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizer/parameter_groups.h"

#include <gtest/gtest.h>

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

TEST(IsExempt, IsSaidByTheFirstEntryThatFits) {
  contract::RunConfig config = Config();
  config.groups[1].clip = false;
  EXPECT_TRUE(IsExempt(config, "layers.0.norm1.weight")) << "the third entry would clip it";
  EXPECT_FALSE(IsExempt(config, "layers.0.norm1.bias")) << "the first entry clips it";
  EXPECT_FALSE(IsExempt(config, "layers.1.norm1.weight"));
  EXPECT_FALSE(IsExempt(config, "embed.weight")) << "of the default group";
}

TEST(GroupWeightDecays, AreTheEntrysOrElseTheOptimizers) {
  EXPECT_EQ(GroupWeightDecays(Config()), (std::vector<double>{0.01, 0, 0.01, 0.5}));
}

// Two groups with betas of their own, one of them with a first beta of 0, which is a value like any other.
contract::RunConfig BetasConfig() {
  contract::RunConfig config = Config();
  config.params.beta1 = 0.5;
  config.params.beta2 = 0.75;
  config.params.eps = 0.25;
  config.groups[0].betas = {0.0, 0.625};
  config.groups[2].betas = {0.875, 0.375};
  return config;
}

void ExpectBetas(const contract::RunConfig& config, int64_t step, const std::vector<contract::BetaPair>& betas) {
  const std::vector<contract::OptimizerParams> params = GroupParams(config, step);
  ASSERT_EQ(params.size(), betas.size());
  for (size_t i = 0; i < betas.size(); ++i) {
    contract::OptimizerParams expected = config.params;
    expected.beta1 = betas[i].first;
    expected.beta2 = betas[i].second;
    EXPECT_EQ(params[i], expected) << "group " << i;
  }
}

TEST(GroupParams, HaveTheEntrysBetasOrElseTheOptimizers) {
  contract::RunConfig config = BetasConfig();
  for (const Schedule::Kind kind : {Schedule::Kind::kConstant, Schedule::Kind::kWarmup, Schedule::Kind::kOneCycle}) {
    config.schedule.kind = kind;
    config.schedule.cycle.moves_momentum = false;
    for (const int64_t step : {0, 3}) ExpectBetas(config, step, {{0.5, 0.75}, {0, 0.625}, {0.5, 0.75}, {0.875, 0.375}});
  }
}

TEST(GroupParams, HaveTheBetasOfOneCycleInEveryGroupWhateverTheOptimizer) {
  contract::RunConfig config = BetasConfig();
  config.schedule.kind = Schedule::Kind::kOneCycle;
  config.schedule.cycle.first_steps = 4;
  config.schedule.cycle.second_steps = 2;
  config.schedule.cycle.min_momentum = 0.5;
  config.schedule.cycle.max_momentum = 0.875;
  for (const contract::OptimizerKind kind : {contract::OptimizerKind::kAdamW, contract::OptimizerKind::kAdam,
                                             contract::OptimizerKind::kLion, contract::OptimizerKind::kLamb}) {
    config.optimizer = kind;
    ExpectBetas(config, 1, std::vector<contract::BetaPair>(4, {0.78125, 0.99}));  // 0.875 − 0.375 / 4
    ExpectBetas(config, 7, std::vector<contract::BetaPair>(4, {0.875, 0.99}));
  }
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

// In Config() the groups are trained at 1, 1, 1/2 and 4 times the optimizer's rate, which is 0.5.
TEST(GroupLearningRates, WithWarmupAndDecayKeepTheRatioOfAGroupsOwnRate) {
  contract::RunConfig config = Config();
  config.schedule.kind = Schedule::Kind::kWarmupDecay;
  config.schedule.warmup_min_lr = 0.125;
  config.schedule.warmup_max_lr = 1.125;
  config.schedule.warmup_num_steps = 4;
  config.schedule.linear = true;
  config.schedule.total_num_steps = 8;
  EXPECT_EQ(GroupLearningRates(config, 0), (std::vector<double>{0.125, 0.125, 0.0625, 0.5}));
  // k = 2: 0.125 + 1 · 2 / 4
  EXPECT_EQ(GroupLearningRates(config, 3), (std::vector<double>{0.625, 0.625, 0.3125, 2.5}));
  // k = 7: 0.125 + 1 · (8 − 7) / 4
  EXPECT_EQ(GroupLearningRates(config, 8), (std::vector<double>{0.375, 0.375, 0.1875, 1.5}));
  EXPECT_EQ(GroupLearningRates(config, 9), (std::vector<double>{0.125, 0.125, 0.0625, 0.5}));
}

TEST(GroupLearningRates, WithWarmupAndCosineAreSharesOfEachGroupsRate) {
  contract::RunConfig config = Config();
  config.schedule.kind = Schedule::Kind::kWarmupCosine;
  config.schedule.warmup_num_steps = 4;
  config.schedule.linear = true;
  config.schedule.total_num_steps = 8;
  config.schedule.warmup_min_ratio = 0.25;
  config.schedule.cos_min_ratio = 0.125;
  // The rates of the other schedules have no part in it.
  config.schedule.warmup_min_lr = config.schedule.warmup_max_lr = 7;
  EXPECT_EQ(GroupLearningRates(config, 0), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(GroupLearningRates(config, 1), (std::vector<double>{0.125, 0.125, 0.0625, 0.5}));
  // k = 2: 0.25 + 0.75 · 2 / 4 = 0.625 of 0.5, 0.5, 0.25 and 2
  EXPECT_EQ(GroupLearningRates(config, 3), (std::vector<double>{0.3125, 0.3125, 0.15625, 1.25}));
  EXPECT_EQ(GroupLearningRates(config, 9), (std::vector<double>{0.0625, 0.0625, 0.03125, 0.25}));
  config.params.lr = 0;
  EXPECT_EQ(GroupLearningRates(config, 3), (std::vector<double>{0, 0, 0.15625, 1.25})) << "no ratio to the optimizer's";
}

TEST(GroupLearningRates, WithOneCycleKeepTheRatioOfAGroupsOwnRate) {
  contract::RunConfig config = Config();
  config.schedule.kind = Schedule::Kind::kOneCycle;
  config.schedule.cycle.min_lr = 1;
  config.schedule.cycle.max_lr = 3;
  config.schedule.cycle.first_steps = 4;
  config.schedule.cycle.second_steps = 2;
  config.schedule.cycle.decay_steps = 2;
  config.schedule.cycle.decay_lr_rate = 0.5;
  EXPECT_EQ(GroupLearningRates(config, 0), (std::vector<double>{1, 1, 0.5, 4}));
  EXPECT_EQ(GroupLearningRates(config, 3), (std::vector<double>{2.5, 2.5, 1.25, 10}));  // 1 + 2 · 3 / 4
  EXPECT_EQ(GroupLearningRates(config, 10), (std::vector<double>{0.5, 0.5, 0.25, 2}));  // 1 / (1 + 0.5 · 4 / 2)
}

TEST(GroupLearningRates, HaveNoRatioToAnOptimizersRateOfZeroWithoutASchedule) {
  contract::RunConfig config = Config();
  config.params.lr = 0;
  EXPECT_EQ(GroupLearningRates(config, 0), (std::vector<double>{0, 0, 0.25, 2}));
}

TEST(GroupLearningRates, RejectAScheduleThatIsNotKnown) {
  contract::RunConfig config = Config();
  config.schedule.kind = static_cast<Schedule::Kind>(5);
  try {
    GroupLearningRates(config, 3);
    FAIL() << "gave rates";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported) << error.what();
  }
}

}  // namespace
}  // namespace plumbline::reference
