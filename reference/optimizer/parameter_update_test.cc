// SPDX-License-Identifier: Apache-2.0
// That each optimizer's name leads to its formula and its state, by one update that no two of them make alike.
#include "reference/optimizer/parameter_update.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;

constexpr double kLr = 0.625;
constexpr double kDecay = 0.5;

contract::OptimizerParams Params() {
  contract::OptimizerParams params;
  params.lr = 99;  // not the group's
  params.weight_decay = 99;
  params.beta1 = 0.5;
  params.beta2 = 0.75;
  params.eps = 1;
  return params;
}

ParameterState Update(OptimizerKind optimizer, const contract::OptimizerParams& params, int64_t t = 2) {
  const ParameterState before = {Matrix(1, 1, {-1}), Matrix(1, 1, {4}), Matrix(1, 1, {4})};
  return UpdateParameter(optimizer, Matrix(1, 1, {2}), before, t, kLr, kDecay, params);
}

// m = −1/2 + 1, v = 3 + 1; m̂ = m / 0.75 and v̂ = v / (7/16).
TEST(UpdateParameter, OfAdamWKeepsBothMoments) {
  const ParameterState after = Update(OptimizerKind::kAdamW, Params());
  EXPECT_EQ(after.moment, Matrix(1, 1, {0.5}));
  EXPECT_EQ(after.second_moment, Matrix(1, 1, {4}));
  EXPECT_DOUBLE_EQ(after.master[0], 4 * (1 - kLr * kDecay) - kLr * (2.0 / 3) / (8 / std::sqrt(7.0) + 1));
}

// g + λ p = 4; m̂ = 2, v̂ = 16.
TEST(UpdateParameter, OfAdamKeepsBothMomentsOfTheDecayedGradient) {
  const ParameterState after = Update(OptimizerKind::kAdam, Params());
  EXPECT_EQ(after.moment, Matrix(1, 1, {1.5}));
  EXPECT_EQ(after.second_moment, Matrix(1, 1, {7}));
  EXPECT_DOUBLE_EQ(after.master[0], 3.75);
}

// u = m̂ / (sqrt(v̂) + 1) + 4 / 2, of AdamW's moments, and the ratio is 4 / u: the step is 4 lr. A limit
// on the ratio shows u.
TEST(UpdateParameter, OfLambKeepsBothMoments) {
  const ParameterState after = Update(OptimizerKind::kLamb, Params());
  EXPECT_EQ(after.moment, Matrix(1, 1, {0.5}));
  EXPECT_EQ(after.second_moment, Matrix(1, 1, {4}));
  EXPECT_DOUBLE_EQ(after.master[0], 4 - kLr * 4);
  contract::OptimizerParams params = Params();
  params.max_coeff = 0.5;
  const double u = (2.0 / 3) / (8 / std::sqrt(7.0) + 1) + kDecay * 4;
  EXPECT_DOUBLE_EQ(Update(OptimizerKind::kLamb, params).master[0], 4 - kLr * 0.5 * u);
}

// −1/2 + 1 is positive, the new m is −3/4 + 1/2.
TEST(UpdateParameter, OfLionKeepsOneMoment) {
  const ParameterState after = Update(OptimizerKind::kLion, Params());
  EXPECT_EQ(after.moment, Matrix(1, 1, {-0.25}));
  EXPECT_EQ(after.second_moment.numel(), 0);
  EXPECT_EQ(after.master, Matrix(1, 1, {4 * (1 - kLr * kDecay) - kLr}));
}

// g + λ p = 4, b = −1/2 + 4; Nesterov's step is along 4 + b / 2.
TEST(UpdateParameter, OfSgdKeepsAMomentWhereThereIsMomentum) {
  contract::OptimizerParams params = Params();
  EXPECT_EQ(Update(OptimizerKind::kSgd, params).master, Matrix(1, 1, {4 - kLr * 4}));
  params.momentum = 0.5;
  const ParameterState plain = Update(OptimizerKind::kSgd, params);
  EXPECT_EQ(plain.moment, Matrix(1, 1, {3.5}));
  EXPECT_EQ(plain.master, Matrix(1, 1, {4 - kLr * 3.5}));
  params.nesterov = true;
  const ParameterState nesterov = Update(OptimizerKind::kSgd, params);
  EXPECT_EQ(nesterov.moment, Matrix(1, 1, {3.5}));
  EXPECT_EQ(nesterov.master, Matrix(1, 1, {4 - kLr * 5.75}));
  EXPECT_EQ(Update(OptimizerKind::kSgd, params, 1).moment, Matrix(1, 1, {4}));
}

TEST(UpdateParameter, RejectsAnOptimizerThatIsNotOfTheRealFamilies) {
  for (const OptimizerKind kind :
       {OptimizerKind::kModularMomentum, OptimizerKind::kModularSgd, static_cast<OptimizerKind>(7)}) {
    try {
      Update(kind, Params());
      FAIL() << "updated by " << static_cast<int>(kind);
    } catch (const contract::Error& error) {
      EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported) << error.what();
    }
  }
}

}  // namespace
}  // namespace plumbline::reference
