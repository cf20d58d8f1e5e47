// SPDX-License-Identifier: Apache-2.0
// Against numbers worked out by hand from docs/semantics.md. What the bounds allow and what they do not:
// update_check_test.cc.
#include "conformance/oracle/update_formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;

UpdateRule Rule(OptimizerKind optimizer) {
  UpdateRule rule;
  rule.optimizer = optimizer;
  rule.params.lr = 0.5;
  rule.params.beta1 = 0.75;
  rule.params.beta2 = 0.5;
  rule.params.eps = 0.25;
  rule.params.weight_decay = 0.5;
  rule.t = 2;
  return rule;
}

// g = 1 + 0.5 * 2 = 2: m = 0.75 * 4 + 0.25 * 2, v = 0.5 * 8 + 0.5 * 4; corrections 1 - 0.75^2 and 1 - 0.5^2.
TEST(UpdateFormula, OfAdamHasTheDecayInTheGradient) {
  const UpdateRule rule = Rule(OptimizerKind::kAdam);
  const UpdateInput before{2, 4, 8, 1};
  EXPECT_DOUBLE_EQ(NextMoment(rule, before).value, 3.5);
  EXPECT_DOUBLE_EQ(NextSecondMoment(rule, before).value, 6);
  EXPECT_DOUBLE_EQ(NextMaster(rule, before, 3.5, 6).value, 2 - 0.5 * (3.5 / 0.4375) / (std::sqrt(6 / 0.75) + 0.25));
}

// The argument is 0.75 * 4 - 0.25 * 8 = 1 and the moment 0.5 * 4 - 0.5 * 8 = -2: other betas would change either sign.
TEST(UpdateFormula, OfLionStepsAlongASign) {
  const UpdateRule rule = Rule(OptimizerKind::kLion);
  const UpdateInput before{2, 4, 0, -8};
  EXPECT_DOUBLE_EQ(NextMoment(rule, before).value, -2);
  const Bounded master = NextMaster(rule, before, -2, 0);
  EXPECT_DOUBLE_EQ(master.value, 2 * (1 - 0.25) - 0.5);
  EXPECT_LT(master.bound, 1e-6);
}

TEST(UpdateFormula, OfLionAllowsEverySignWhereTheArgumentIsRounding) {
  const UpdateRule rule = Rule(OptimizerKind::kLion);
  for (float gradient : {-12.0f, std::nextafterf(-12, 0), std::nextafterf(-12, -13)}) {
    const Bounded master = NextMaster(rule, {2, 4, 0, gradient}, 0, 0);
    for (double sign : {-1.0, 0.0, 1.0}) EXPECT_TRUE(master.Holds(1.5 - 0.5 * sign)) << gradient;
    EXPECT_FALSE(master.Holds(0.99));
    EXPECT_FALSE(master.Holds(2.01));
  }
  const Bounded sure = NextMaster(rule, {2, 4, 0, -12.001}, 0, 0);
  EXPECT_TRUE(sure.Holds(2));
  EXPECT_FALSE(sure.Holds(1.5));
  // Nothing moves what never had a gradient.
  const Bounded still = NextMaster(rule, {2, 0, 0, 0}, 0, 0);
  EXPECT_TRUE(still.Holds(1.5));
  EXPECT_FALSE(still.Holds(1));
}

// b = 0.75 * 4 + g with g = 1 + 0.5 * 2; the step is 0.5 (g + 0.75 b).
TEST(UpdateFormula, OfNesterovLooksAhead) {
  UpdateRule rule = Rule(OptimizerKind::kSgd);
  rule.params.momentum = 0.75;
  rule.params.nesterov = true;
  const UpdateInput before{2, 4, 0, 1};
  EXPECT_DOUBLE_EQ(NextMoment(rule, before).value, 5);
  EXPECT_DOUBLE_EQ(NextMaster(rule, before, 5, 0).value, 2 - 0.5 * (2 + 0.75 * 5));
}

// u = (m / 0.4375) / (sqrt(v / 0.75) + 0.25) + 0.5 p: of (7, 12) and p = 2 that is 16 / 4.25 + 1.
TEST(UpdateFormula, OfLambScalesByARatioOfNorms) {
  UpdateRule rule = Rule(OptimizerKind::kLamb);
  const Bounded direction = LambDirection(rule, {2, 0, 0, 0}, 7, 12);
  EXPECT_DOUBLE_EQ(direction.value, 16 / 4.25 + 1);
  EXPECT_LT(direction.bound, 1e-5);
  rule.ratio = {3, 0};
  EXPECT_DOUBLE_EQ(NextMaster(rule, {2, 0, 0, 0}, 7, 12).value, 2 - 0.5 * 3 * (16 / 4.25 + 1));
}

TEST(LambRatio, IsThatOfTheNormsWithinItsLimits) {
  const contract::OptimizerParams params = Rule(OptimizerKind::kLamb).params;
  const auto ratio = [&](std::vector<float> master, std::vector<Bounded> directions) {
    return LambRatio(params, master, directions);
  };
  EXPECT_DOUBLE_EQ(ratio({3, 4}, {{0, 0}, {2, 0}}).value, 2.5);
  EXPECT_LT(ratio({3, 4}, {{0, 0}, {2, 0}}).bound, 1e-5);
  EXPECT_NEAR(ratio({3, 4}, {{0, 0}, {2, 0.02}}).bound, 0.025, 1e-4);
  EXPECT_EQ(ratio({3, 4}, {{0, 0}, {0.25, 0}}).value, 10);
  EXPECT_EQ(ratio({3, 4}, {{0, 0}, {1000, 0}}).value, 0.01);
  EXPECT_EQ(ratio({0, 0}, {{0, 0}, {2, 0}}).value, 1);
  EXPECT_EQ(ratio({3, 4}, {{0, 0}, {0, 0}}).value, 1);
  EXPECT_EQ(ratio({3, 4}, {{0, 0}, {0, 0}}).bound, 0);
}

TEST(IsExempt, IsOfTheGroupAlone) {
  contract::RunConfig config;
  config.groups = {{"a", std::nullopt, std::nullopt, std::nullopt, false}, {"b", 0.5, std::nullopt}};
  EXPECT_FALSE(IsExempt(config, 0));
  EXPECT_TRUE(IsExempt(config, 1));
  EXPECT_FALSE(IsExempt(config, 2));
}

}  // namespace
}  // namespace plumbline::conformance
