// SPDX-License-Identifier: Apache-2.0
// LAMB against values worked out by hand.
#include "reference/optimizer/lamb.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

constexpr double kLr = 0.125;
constexpr double kDecay = 0.25;
constexpr double kTolerance = 1e-15;

contract::OptimizerParams Params() {
  contract::OptimizerParams params;
  params.beta1 = 0.5;
  params.beta2 = 0.75;
  params.eps = 4;
  params.min_coeff = 0.0625;
  params.max_coeff = 8;
  return params;
}

void ExpectNear(const Matrix& a, const Matrix& b) {
  ASSERT_TRUE(a.SameShape(b));
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a[i], b[i], kTolerance) << i;
}

// At t = 2 the corrections are 3/4 and 7/16. By element m = 7.5 and 3, so m̂ = 10 and 4; v = 7, so v̂ = 16 and the
// denominator 8; u = 10 / 8 + 3 / 4 and 4 / 8 + 4 / 4, which is not along p. ‖u‖ = 2.5, ‖p‖ = 5 and the ratio is 2; of
// one element alone it would be 1.5 or 2.67.
LambResult UpdateByHand(const contract::OptimizerParams& params) {
  return Lamb(Matrix(2, 1, {4, -4}), Matrix(2, 1, {11, 10}), Matrix(2, 1, {4, 4}), Matrix(2, 1, {3, 4}), 2, kLr, kDecay,
              params);
}

Matrix MovedBy(double ratio) { return Matrix(2, 1, {3 - kLr * ratio * 2, 4 - kLr * ratio * 1.5}); }

TEST(Lamb, ScalesTheStepOfTheWholeParameterByTheRatioOfItsNormToTheDirections) {
  const LambResult result = UpdateByHand(Params());
  EXPECT_EQ(result.moment, Matrix(2, 1, {7.5, 3}));
  EXPECT_EQ(result.second_moment, Matrix(2, 1, {7, 7}));
  ExpectNear(result.master, MovedBy(2));
}

TEST(Lamb, KeepsTheRatioWithinItsLimits) {
  const struct {
    double min, max, ratio;
  } rows[] = {{0.0625, 1.5, 1.5}, {0.0625, 2, 2}, {2, 8, 2}, {2.5, 8, 2.5}, {1.25, 1.25, 1.25}, {0, 0, 0}};
  for (const auto& row : rows) {
    contract::OptimizerParams params = Params();
    params.min_coeff = row.min;
    params.max_coeff = row.max;
    ExpectNear(UpdateByHand(params).master, MovedBy(row.ratio));
  }
}

TEST(TrustRatio, IsOneWhereANormIsZeroWhateverTheLimits) {
  contract::OptimizerParams params = Params();
  EXPECT_EQ(TrustRatio(6, 3, params), 2);
  for (const double limit : {0.25, 4.0}) {
    params.min_coeff = params.max_coeff = limit;
    EXPECT_EQ(TrustRatio(6, 3, params), limit);
    EXPECT_EQ(TrustRatio(0, 3, params), 1);
    EXPECT_EQ(TrustRatio(6, 0, params), 1);
    EXPECT_EQ(TrustRatio(0, 0, params), 1);
  }
}

// A parameter that starts at 0, as biases do, moves by the plain direction: m̂ = 4, v̂ = 16, so 4 / (4 + 4).
TEST(Lamb, MovesAParameterOfNormZeroByTheRateAlone) {
  contract::OptimizerParams params = Params();
  params.max_coeff = 0.5;
  const Matrix zero(1, 2);
  const LambResult result = Lamb(Matrix(1, 2, {4, -4}), zero, zero, zero, 1, kLr, kDecay, params);
  ExpectNear(result.master, Matrix(1, 2, {-kLr / 2, kLr / 2}));
}

TEST(Lamb, LeavesAParameterWithoutDirectionWhereItIs) {
  const Matrix zero(1, 2);
  const LambResult result = Lamb(zero, zero, zero, Matrix(1, 2, {3, -4}), 1, kLr, 0, Params());
  EXPECT_EQ(result.master, Matrix(1, 2, {3, -4}));
}

// Without gradient u = λ p and the ratio is 1 / λ, so p shrinks by lr however small the decay is.
TEST(Lamb, WithoutGradientShrinksByTheRate) {
  const Matrix zero(1, 2);
  LambResult state{zero, zero, Matrix(1, 2, {3, -4})};
  for (int64_t t = 1; t <= 20; ++t)
    state = Lamb(zero, state.moment, state.second_moment, state.master, t, kLr, kDecay, Params());
  EXPECT_NEAR(state.master[0], 3 * std::pow(1 - kLr, 20), 1e-15);
  EXPECT_NEAR(state.master[1], -4 * std::pow(1 - kLr, 20), 1e-15);
  EXPECT_EQ(state.moment, zero);
  EXPECT_EQ(state.second_moment, zero);
}

TEST(Lamb, RejectsOtherShapesAndATBelowOne) {
  const Matrix a(1, 2);
  const Matrix b(2, 1);
  EXPECT_THROW(Lamb(b, a, a, a, 1, kLr, 0, Params()), contract::Error);
  EXPECT_THROW(Lamb(a, b, a, a, 1, kLr, 0, Params()), contract::Error);
  EXPECT_THROW(Lamb(a, a, b, a, 1, kLr, 0, Params()), contract::Error);
  EXPECT_THROW(Lamb(a, a, a, a, 0, kLr, 0, Params()), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
