// SPDX-License-Identifier: Apache-2.0
// Lion against values worked out by hand.
#include "reference/optimizer/lion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

constexpr double kLr = 0.125;

contract::OptimizerParams Params() {
  contract::OptimizerParams params;
  params.beta1 = 0.25;
  params.beta2 = 0.75;
  return params;
}

// By element, c = m / 4 + 3 g / 4, whose sign counts, and the new m = 3 m / 4 + g / 4:
//   −0.5 and 0.5, which differ in sign;   0 of two that are not 0, and 2;   −0.25 without gradient;   1.5 without
//   moment;   0.25, while g is negative.
TEST(Lion, MovesByTheRateAgainstTheSignOfWhatTheFirstBetaMixes) {
  const LionResult result = Lion(Matrix(1, 5, {-1, -1, 0, 2, -1}), Matrix(1, 5, {1, 3, -1, 0, 4}),
                                 Matrix(1, 5, {1, -2, 0, 4, 0.5}), kLr, 0, Params());
  EXPECT_EQ(result.moment, Matrix(1, 5, {0.5, 2, -0.75, 0.5, 2.75}));
  EXPECT_EQ(result.master, Matrix(1, 5, {1 + kLr, -2, kLr, 4 - kLr, 0.5 - kLr}));
}

TEST(Lion, MovesByTheRateWhateverTheSize) {
  const Matrix zero(1, 3);
  const LionResult result = Lion(Matrix(1, 3, {1e-300, -1e300, 3}), zero, zero, kLr, 0, Params());
  EXPECT_EQ(result.master, Matrix(1, 3, {-kLr, kLr, -kLr}));
}

TEST(Lion, DecaysApartFromTheMomentAndAlsoWhatDoesNotMove) {
  const LionResult result =
      Lion(Matrix(1, 3, {-1, -1, 0}), Matrix(1, 3, {1, 3, 0}), Matrix(1, 3, {1, -2, 8}), kLr, 0.5, Params());
  EXPECT_EQ(result.moment, Matrix(1, 3, {0.5, 2, 0}));
  EXPECT_EQ(result.master, Matrix(1, 3, {0.9375 + kLr, -1.875, 7.5}));  // 1 − lr λ is 15/16
}

// m after n steps of a constant g is g (1 − β₂^n), of g's sign: every step is the whole rate.
TEST(Lion, WithAConstantGradientMovesByTheSameAmountInEveryStep) {
  const Matrix gradient(1, 2, {0.5, -3});
  LionResult state{Matrix(1, 2), Matrix(1, 2, {1, 1})};
  for (int step = 1; step <= 40; ++step) {
    state = Lion(gradient, state.moment, state.master, kLr, 0, Params());
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_NEAR(state.moment[i], gradient[i] * (1 - std::pow(0.75, step)), 1e-15) << "step " << step;
    EXPECT_EQ(state.master, Matrix(1, 2, {1 - step * kLr, 1 + step * kLr}));
  }
}

TEST(Lion, RejectsOtherShapes) {
  const Matrix a(1, 2);
  const Matrix b(2, 1);
  EXPECT_THROW(Lion(b, a, a, kLr, 0, Params()), contract::Error);
  EXPECT_THROW(Lion(a, b, a, kLr, 0, Params()), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
