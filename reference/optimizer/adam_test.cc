// SPDX-License-Identifier: Apache-2.0
// Adam against values worked out by hand.
#include "reference/optimizer/adam.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

contract::OptimizerParams Params() {
  contract::OptimizerParams params;
  params.beta1 = 0.5;
  params.beta2 = 0.75;
  params.eps = 1;
  return params;
}

// With g + λ p = ±4 and t = 2: m = 1.5 of 1 − β₁² = 0.75 makes m̂ = 2, v = 7 of 1 − β₂² = 7/16 makes v̂ = 16, and
// 2 / (4 + 1) of the rate is 1/4.
TEST(Adam, AddsTheDecayToTheGradientThatBothMomentsSee) {
  const AdamWResult result = Adam(Matrix(1, 2, {2, -2}), Matrix(1, 2, {-1, 1}), Matrix(1, 2, {4, 4}),
                                  Matrix(1, 2, {4, -4}), 2, 0.625, 0.5, Params());
  EXPECT_EQ(result.moment, Matrix(1, 2, {1.5, -1.5}));
  EXPECT_EQ(result.second_moment, Matrix(1, 2, {7, 7}));
  EXPECT_EQ(result.master, Matrix(1, 2, {3.75, -3.75}));
}

// What has no gradient moves by the whole rate against its sign: the correction makes the first m̂ and v̂ λ p and (λ p)².
TEST(Adam, MovesWhatHasNoGradientByItsDecayAlone) {
  contract::OptimizerParams params = Params();
  params.eps = 0;
  const Matrix zero(1, 3);
  const AdamWResult result = Adam(zero, zero, zero, Matrix(1, 3, {4, -0.5, 64}), 1, 0.125, 0.25, params);
  EXPECT_EQ(result.moment, Matrix(1, 3, {0.5, -0.0625, 8}));
  EXPECT_EQ(result.second_moment, Matrix(1, 3, {0.25, 0.25 * 0.015625, 64}));
  EXPECT_EQ(result.master, Matrix(1, 3, {3.875, -0.375, 63.875}));
}

TEST(Adam, RejectsOtherShapesAndATBelowOne) {
  const Matrix a(1, 2);
  const Matrix b(2, 1);
  EXPECT_THROW(Adam(b, a, a, a, 1, 1, 0, Params()), contract::Error);
  EXPECT_THROW(Adam(a, b, a, a, 1, 1, 0, Params()), contract::Error);
  EXPECT_THROW(Adam(a, a, b, a, 1, 1, 0, Params()), contract::Error);
  EXPECT_THROW(Adam(a, a, a, a, 0, 1, 0, Params()), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
