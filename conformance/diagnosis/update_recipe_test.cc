// SPDX-License-Identifier: Apache-2.0
// The recipe as it is by default is the update: that of the oracle's formula, which shares nothing with it, and that of
// docs/exact-family.md worked out by hand.
#include "conformance/diagnosis/update_recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/oracle/update_formula.h"

namespace plumbline::conformance {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

const TensorState kBefore = {{0.5, -1.25, 0, 3}, {0.1, -0.2, 0.3, 0}, {0.01, 0.5, 0, 2}};
const std::vector<double> kGradient = {0.25, -3, 0, 1e-6};

Bounded FormulaRatio(const UpdateRule& rule, const std::vector<double>& moments,
                     const std::vector<double>& second_moments) {
  std::vector<Bounded> directions;
  for (size_t i = 0; i < moments.size(); ++i) {
    directions.push_back(LambDirection(rule, {kBefore.master[i], 0, 0, 0}, moments[i], second_moments[i]));
  }
  const std::vector<float> master(kBefore.master.begin(), kBefore.master.end());
  return LambRatio(rule.params, master, directions);
}

void ExpectFormula(const UpdateRecipe& recipe) {
  UpdateRule rule;
  rule.optimizer = recipe.optimizer;
  rule.params = recipe.params;
  rule.clipping.factor = recipe.clip_factor;
  rule.t = recipe.t;
  const std::vector<double> moments = AfterUpdate(recipe, kBefore, kGradient, TensorKind::kMoment);
  const std::vector<double> second_moments = AfterUpdate(recipe, kBefore, kGradient, TensorKind::kSecondMoment);
  const std::vector<double> masters = AfterUpdate(recipe, kBefore, kGradient, TensorKind::kMaster);
  for (size_t i = 0; i < kGradient.size(); ++i) {
    const UpdateInput before{kBefore.master[i], kBefore.moment[i], kBefore.second_moment[i], kGradient[i]};
    EXPECT_NEAR(moments[i], NextMoment(rule, before).value, 1e-15);
    if (recipe.optimizer != OptimizerKind::kSgd && recipe.optimizer != OptimizerKind::kLion) {
      EXPECT_NEAR(second_moments[i], NextSecondMoment(rule, before).value, 1e-15);
    }
    if (recipe.optimizer == OptimizerKind::kLamb) rule.ratio = FormulaRatio(rule, moments, second_moments);
    const double master = NextMaster(rule, before, moments[i], second_moments[i]).value;
    EXPECT_NEAR(masters[i], master, 1e-14 * std::max(1.0, std::abs(master)));
  }
}

TEST(UpdateRecipe, IsTheFormulaOfEachOptimizer) {
  for (int64_t t : {1, 2, 17}) {
    for (double clip : {1.0, 0.25}) {
      UpdateRecipe recipe;
      recipe.params = {0.01, 0.9, 0.99, 1e-6, 0.1, 0.9};
      recipe.clip_factor = clip;
      recipe.t = t;
      recipe.optimizer = OptimizerKind::kAdamW;
      ExpectFormula(recipe);
      recipe.optimizer = OptimizerKind::kSgd;
      ExpectFormula(recipe);
      recipe.params.nesterov = true;
      ExpectFormula(recipe);
      recipe.optimizer = OptimizerKind::kLion;
      ExpectFormula(recipe);
      recipe.optimizer = OptimizerKind::kLamb;
      ExpectFormula(recipe);
      recipe.optimizer = OptimizerKind::kAdam;
      recipe.decay = UpdateRecipe::Decay::kCoupled;
      ExpectFormula(recipe);
    }
  }
}

TEST(UpdateRecipe, IsTheModularUpdateWorkedOutByHand) {
  UpdateRecipe recipe;
  recipe.t = 3;
  const TensorState before{{5, 23, 0}, {14, -14, 0}, {}};
  const std::vector<double> gradient = {1, -1, 100};
  // M + D + t: 18, -12, 103; wrapped into [-14, 14] by multiples of 29: -11, -12, -13.
  EXPECT_EQ(AfterUpdate(recipe, before, gradient, TensorKind::kMoment), (std::vector<double>{-11, -12, -13}));
  // U - M - t: 13, 32, 10; modulo 24: 13, 8, 10.
  EXPECT_EQ(AfterUpdate(recipe, before, gradient, TensorKind::kMaster), (std::vector<double>{13, 8, 10}));
  EXPECT_EQ(AfterUpdate(recipe, before, gradient, TensorKind::kWeight), (std::vector<double>{0, 0, 0}));
  recipe.optimizer = OptimizerKind::kModularSgd;
  // U - D: 4, 24, -100; modulo 24: 4, 0, 20.
  EXPECT_EQ(AfterUpdate(recipe, before, gradient, TensorKind::kMaster), (std::vector<double>{4, 0, 20}));
  EXPECT_EQ(AfterUpdate(recipe, before, gradient, TensorKind::kWeight), (std::vector<double>{-1, -1, 1}));
}

TEST(UpdateRecipe, EachDeviationChangesTheMasterWeight) {
  UpdateRecipe right;
  right.optimizer = OptimizerKind::kAdamW;
  right.params = {0.01, 0.9, 0.99, 1e-2, 0.1, 0};
  right.t = 3;
  std::vector<UpdateRecipe> wrong(6, right);
  wrong[0].corrects_first = false;
  wrong[1].corrects_second = false;
  wrong[2].decay = UpdateRecipe::Decay::kCoupled;
  wrong[3].decay = UpdateRecipe::Decay::kNone;
  wrong[4].epsilon = UpdateRecipe::Epsilon::kInsideRoot;
  wrong[5].epsilon = UpdateRecipe::Epsilon::kBeforeCorrection;
  for (const UpdateRecipe& recipe : wrong) {
    EXPECT_NE(AfterUpdate(recipe, kBefore, kGradient, TensorKind::kMaster),
              AfterUpdate(right, kBefore, kGradient, TensorKind::kMaster));
  }
}

TEST(UpdateRecipe, WeightsAreStoredInTheirType) {
  UpdateRecipe recipe;
  recipe.optimizer = OptimizerKind::kSgd;
  recipe.storage = contract::DType::kBF16;
  EXPECT_EQ(WorkingWeight(recipe, 1 + 0x1p-8), 1.0);  // ties go to even
  recipe.storage = contract::DType::kF32;
  EXPECT_EQ(WorkingWeight(recipe, 1 + 0x1p-8), 1 + 0x1p-8);
  EXPECT_TRUE(AfterUpdate(recipe, {}, {}, TensorKind::kMaster).empty());
}

}  // namespace
}  // namespace plumbline::conformance
