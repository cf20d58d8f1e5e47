// SPDX-License-Identifier: Apache-2.0
// Groups and learning rates against numbers worked out by hand from docs/semantics.md.
#include "conformance/engines/torch_eager/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "conformance/contract/error.h"

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

TEST(Schedule, IsClippedWhatTheFirstGroupThatMatchesDoesNotExempt) {
  contract::RunConfig config = WithGroups();
  config.groups[1].clip = false;
  EXPECT_TRUE(IsClipped(config, "embed.weight"));
  EXPECT_TRUE(IsClipped(config, "layers.1.norm1.bias"));
  EXPECT_FALSE(IsClipped(config, "layers.1.norm1.weight"));
  EXPECT_TRUE(IsClipped(config, "norm.weight"));
}

using Kind = contract::Schedule::Kind;

// Of the default group, whose lr every other is derived from, in steps 0, 1, ...
void ExpectRates(const contract::RunConfig& config, const std::vector<double>& expected) {
  for (size_t s = 0; s < expected.size(); ++s) {
    EXPECT_DOUBLE_EQ(LearningRates(config, static_cast<int64_t>(s))[0], expected[s]) << "step " << s;
  }
}

// From 1/4 to 5/4 in N = 4 steps.
contract::RunConfig Warmup(Kind kind) {
  contract::RunConfig config = WithGroups();
  config.schedule.kind = kind;
  config.schedule.warmup_min_lr = 0.25;
  config.schedule.warmup_max_lr = 1.25;
  config.schedule.warmup_num_steps = 4;
  config.schedule.linear = true;
  config.schedule.total_num_steps = 8;
  return config;
}

// k = s - 1: gamma is 0, then 0/4, 1/4, 2/4, 3/4, then 1.
TEST(Schedule, LinearWarmupStaysAtTheMinimumForTwoStepsAndScalesGroups) {
  const contract::RunConfig config = Warmup(Kind::kWarmup);
  const std::vector<double> expected = {0.25, 0.25, 0.5, 0.75, 1.0, 1.25, 1.25};
  ExpectRates(config, expected);
  for (size_t s = 0; s < expected.size(); ++s) {
    const std::vector<double> rates = LearningRates(config, static_cast<int64_t>(s));
    EXPECT_EQ(rates, (std::vector<double>{expected[s], expected[s] / 4, expected[s], expected[s] * 2})) << s;
  }
  EXPECT_EQ(LearningRates(config, 1'000'000)[0], 1.25);
}

// N = 8: gamma of k = 1, 3 and 7 is ln 2, ln 4 and ln 8, each / ln 8.
TEST(Schedule, LogarithmicWarmup) {
  contract::RunConfig config = Warmup(Kind::kWarmup);
  config.schedule.linear = false;
  config.schedule.warmup_num_steps = 8;
  EXPECT_EQ(LearningRates(config, 0)[0], 0.25);
  EXPECT_EQ(LearningRates(config, 1)[0], 0.25);
  EXPECT_DOUBLE_EQ(LearningRates(config, 2)[0], 0.25 + 1.0 / 3);
  EXPECT_DOUBLE_EQ(LearningRates(config, 4)[0], 0.25 + 2.0 / 3);
  EXPECT_DOUBLE_EQ(LearningRates(config, 8)[0], 1.25);
  EXPECT_DOUBLE_EQ(LearningRates(config, 9)[0], 1.25);
}

// So that gamma of k = 1 is 1/2, or ln 2 / ln 2, and that of k = 2 is 1: with WarmupDecayLR (8 - 2) / (8 - 2). With
// WarmupCosineLR k = 2 is the first of 6 steps of decay: (1 + cos(pi / 6)) / 2.
TEST(Schedule, AWarmupOfLessThanTwoStepsHasTwo) {
  for (const int64_t num_steps : {0, 1, 2}) {
    for (const Kind kind : {Kind::kWarmup, Kind::kWarmupDecay}) {
      contract::RunConfig config = Warmup(kind);
      config.schedule.warmup_num_steps = num_steps;
      ExpectRates(config, {0.25, 0.25, 0.75, 1.25});
      config.schedule.linear = false;
      ExpectRates(config, {0.25, 0.25, 1.25, 1.25});
    }
    contract::RunConfig config = Warmup(Kind::kWarmupCosine);
    config.schedule.warmup_num_steps = num_steps;
    config.schedule.cos_min_ratio = 0;
    ExpectRates(config, {0, 0, 0.25, 0.5 * (1 + std::sqrt(0.75)) / 2});
  }
}

// N = 4 and S = 8: gamma of k = 4 ... 8 is 4/4, 3/4, 2/4, 1/4, 0, and 0 from then on.
TEST(Schedule, WarmupDecayFallsToTheMinimumAtItsLastStepAndScalesGroups) {
  const contract::RunConfig config = Warmup(Kind::kWarmupDecay);
  const std::vector<double> expected = {0.25, 0.25, 0.5, 0.75, 1.0, 1.25, 1.0, 0.75, 0.5, 0.25, 0.25, 0.25};
  ExpectRates(config, expected);
  for (size_t s = 0; s < expected.size(); ++s) {
    const std::vector<double> rates = LearningRates(config, static_cast<int64_t>(s));
    EXPECT_EQ(rates, (std::vector<double>{expected[s], expected[s] / 4, expected[s], expected[s] * 2})) << s;
  }
  EXPECT_EQ(LearningRates(config, 1'000'000)[0], 0.25);
}

TEST(Schedule, LogarithmicWarmupDecay) {
  contract::RunConfig config = Warmup(Kind::kWarmupDecay);
  config.schedule.linear = false;
  // ln 1, ln 2, ln 3 and ln 4, each / ln 4; then 4/4, 3/4.
  ExpectRates(config, {0.25, 0.25, 0.75, 0.25 + std::log(3.0) / std::log(4.0), 1.25, 1.25, 1.0});
}

// The warm-up is whole; k = 4 is then (S - 4) / max(1, S - 4), at least 0.
TEST(Schedule, WarmupDecayWithoutStepsToDecayInEndsAtOnce) {
  for (const int64_t total : {0, 1, 2, 3, 4}) {
    contract::RunConfig config = Warmup(Kind::kWarmupDecay);
    config.schedule.total_num_steps = total;
    ExpectRates(config, {0.25, 0.25, 0.5, 0.75, 1.0, 0.25, 0.25});
  }
  contract::RunConfig config = Warmup(Kind::kWarmupDecay);
  config.schedule.total_num_steps = 5;
  ExpectRates(config, {0.25, 0.25, 0.5, 0.75, 1.0, 1.25, 0.25, 0.25});
}

// r = 1/4 and c = 1/2, N = 4 and S = 8.
contract::RunConfig Cosine() {
  contract::RunConfig config = Warmup(Kind::kWarmupCosine);
  config.schedule.warmup_min_ratio = 0.25;
  config.schedule.cos_min_ratio = 0.5;
  return config;
}

// 0 for k < 0; 1/4 + 3/4 (0/4, 1/4, 2/4, 3/4); 1/2 + 1/2 (1 + cos(pi x)) / 2 with x = 1/4, 2/4, 3/4, 4/4 for k = 4 ...
// 7 and 1 from then on; cos(pi / 4) = sqrt(1/2).
TEST(Schedule, WarmupCosineMultipliesEachGroupsOwnRate) {
  const contract::RunConfig config = Cosine();
  const double h = std::sqrt(0.5);
  const std::vector<double> ratios = {0,   0.25, 0.4375, 0.625, 0.8125, 0.5 + (1 + h) / 4, 0.75, 0.5 + (1 - h) / 4,
                                      0.5, 0.5,  0.5};
  for (size_t s = 0; s < ratios.size(); ++s) {
    const std::vector<double> rates = LearningRates(config, static_cast<int64_t>(s));
    ASSERT_EQ(rates.size(), 4u);
    EXPECT_DOUBLE_EQ(rates[0], 0.5 * ratios[s]) << s;
    EXPECT_DOUBLE_EQ(rates[1], 0.125 * ratios[s]) << s;
    EXPECT_DOUBLE_EQ(rates[2], 0.5 * ratios[s]) << s;
    EXPECT_DOUBLE_EQ(rates[3], 1.0 * ratios[s]) << s;
  }
  EXPECT_EQ(LearningRates(config, 1'000'000)[0], 0.25);
}

// 1/4 + 3/4 times ln 1, ln 2, ln 3 and ln 4, each / ln 4.
TEST(Schedule, LogarithmicWarmupCosine) {
  contract::RunConfig config = Cosine();
  config.schedule.linear = false;
  ExpectRates(config, {0, 0.125, 0.5 * 0.625, 0.5 * (0.25 + 0.75 * std::log(3.0) / std::log(4.0)), 0.5});
}

// x of k = 4 is 1 / max(1, S - 4): 1 up to S = 5, and then a half.
TEST(Schedule, WarmupCosineWithAStepOrNoneToDecayInEndsAtOnce) {
  for (const int64_t total : {0, 2, 4, 5}) {
    contract::RunConfig config = Cosine();
    config.schedule.total_num_steps = total;
    ExpectRates(config, {0, 0.125, 0.21875, 0.3125, 0.40625, 0.25, 0.25});
  }
  contract::RunConfig config = Cosine();
  config.schedule.total_num_steps = 6;
  ExpectRates(config, {0, 0.125, 0.21875, 0.3125, 0.40625, 0.375, 0.25, 0.25});
}

TEST(Schedule, WarmupCosineNeedsNoRateOfTheOptimizer) {
  contract::RunConfig config = Cosine();
  config.params.lr = 0;
  EXPECT_EQ(LearningRates(config, 3), (std::vector<double>{0, 0.125 * 0.625, 0, 0.625}));
}

TEST(Schedule, CountsMayBeAsLargeAsTheContractHasThem) {
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const Kind kind : {Kind::kWarmupDecay, Kind::kWarmupCosine}) {
    contract::RunConfig config = Warmup(kind);
    config.schedule.warmup_num_steps = kMost;
    config.schedule.total_num_steps = 0;
    EXPECT_DOUBLE_EQ(LearningRates(config, kMost + 1)[0], kind == Kind::kWarmupDecay ? 0.25 : 0.5 * 1e-4);
  }
}

TEST(Schedule, ThoseOfOneRateForAllScaleGroupsByTheOptimizersRate) {
  contract::Schedule schedule;
  for (const Kind kind : {Kind::kWarmup, Kind::kWarmupDecay, Kind::kOneCycle}) {
    schedule.kind = kind;
    EXPECT_TRUE(SetsOneRate(schedule));
  }
  for (const Kind kind : {Kind::kConstant, Kind::kWarmupCosine}) {
    schedule.kind = kind;
    EXPECT_FALSE(SetsOneRate(schedule));
  }
}

TEST(Schedule, AKindWithoutAFormulaIsRefused) {
  contract::RunConfig config;
  config.schedule.kind = static_cast<Kind>(static_cast<int>(Kind::kOneCycle) + 1);
  const auto expect_unsupported = [](const std::function<void()>& ask) {
    try {
      ask();
      ADD_FAILURE() << "accepted";
    } catch (const contract::Error& error) {
      EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported);
    }
  };
  expect_unsupported([&] { LearningRates(config, 1); });
  expect_unsupported([&] { BetasAt(config, 1); });
  expect_unsupported([&] { SetsOneRate(config.schedule); });
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
