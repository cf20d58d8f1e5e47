// SPDX-License-Identifier: Apache-2.0
// AdamW against closed forms.
#include "reference/optimizer/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

constexpr double kLr = 1e-2;

contract::OptimizerParams Params(double eps) {
  contract::OptimizerParams params;
  params.beta1 = 0.9;
  params.beta2 = 0.98;
  params.eps = eps;
  return params;
}

// Bias correction makes both moments of a constant gradient exact, so every update is lr · g / (|g| + ε).
TEST(AdamW, WithAConstantGradientMovesByTheSameAmountInEveryStep) {
  constexpr double kEps = 0.125;
  const Matrix gradient(1, 3, {0.5, -2, 1e-3});
  AdamWResult state{Matrix(1, 3), Matrix(1, 3), Matrix(1, 3, {1, 1, 1})};
  for (int64_t t = 1; t <= 300; ++t) {
    state = AdamW(gradient, state.moment, state.second_moment, state.master, t, kLr, 0, Params(kEps));
    const auto steps = static_cast<double>(t);
    for (int64_t i = 0; i < 3; ++i) {
      const double g = gradient[i];
      EXPECT_NEAR(state.moment[i], g * (1 - std::pow(0.9, steps)), 1e-14);
      EXPECT_NEAR(state.second_moment[i], g * g * (1 - std::pow(0.98, steps)), 1e-14);
      EXPECT_NEAR(state.master[i], 1 - steps * kLr * g / (std::abs(g) + kEps), 1e-11);
    }
  }
}

TEST(AdamW, MovesByTheRateAgainstTheSignInTheFirstStepWhateverTheSize) {
  const Matrix gradient(1, 4, {3e-4, -5, 1e6, -1e-6});
  const Matrix zero(1, 4);
  const AdamWResult result = AdamW(gradient, zero, zero, zero, 1, kLr, 0, Params(0));
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(result.master[i], gradient[i] > 0 ? -kLr : kLr, 1e-16);
}

TEST(AdamW, DoesNotMoveWhatHasNoGradientAndNoDecay) {
  const Matrix zero(1, 1);
  const AdamWResult result = AdamW(zero, zero, zero, Matrix(1, 1, {3}), 1, kLr, 0, Params(1e-8));
  EXPECT_EQ(result.master[0], 3);
}

TEST(AdamW, WithoutGradientDecaysGeometricallyAndLeavesTheMomentsAlone) {
  constexpr double kDecay = 0.25;
  const Matrix zero(1, 1);
  AdamWResult state{zero, zero, Matrix(1, 1, {3})};
  for (int64_t t = 1; t <= 50; ++t)
    state = AdamW(zero, state.moment, state.second_moment, state.master, t, kLr, kDecay, Params(1e-8));
  EXPECT_NEAR(state.master[0], 3 * std::pow(1 - kLr * kDecay, 50), 1e-13);
  EXPECT_EQ(state.moment, zero);
  EXPECT_EQ(state.second_moment, zero);
}

TEST(AdamW, CorrectsTheBiasByTheCountOfUpdatesThatItIsGiven) {
  // One update from moments in mid-training, written out by hand for t = 5.
  const AdamWResult result =
      AdamW(Matrix(1, 1, {2}), Matrix(1, 1, {0.5}), Matrix(1, 1, {0.25}), Matrix(1, 1, {1}), 5, kLr, 0.1, Params(0.01));
  const double m = 0.9 * 0.5 + 0.1 * 2;
  const double v = 0.98 * 0.25 + 0.02 * 4;
  const double m_hat = m / (1 - 0.9 * 0.9 * 0.9 * 0.9 * 0.9);
  const double v_hat = v / (1 - 0.98 * 0.98 * 0.98 * 0.98 * 0.98);
  EXPECT_NEAR(result.moment[0], m, 1e-15);
  EXPECT_NEAR(result.second_moment[0], v, 1e-15);
  EXPECT_NEAR(result.master[0], 1 - kLr * 0.1 - kLr * m_hat / (std::sqrt(v_hat) + 0.01), 1e-15);
}

TEST(AdamW, KeepsWeightDecayOutOfTheMoments) {
  const Matrix gradient = RandomReals(1, 2, 3, 1);
  const Matrix master = RandomReals(2, 2, 3, 1);
  const Matrix zero(2, 3);
  const AdamWResult with = AdamW(gradient, zero, zero, master, 1, kLr, 0.5, Params(1e-8));
  const AdamWResult without = AdamW(gradient, zero, zero, master, 1, kLr, 0, Params(1e-8));
  EXPECT_EQ(with.moment, without.moment);
  EXPECT_EQ(with.second_moment, without.second_moment);
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(without.master[i] - with.master[i], kLr * 0.5 * master[i], 1e-15);
}

TEST(AdamW, RejectsOtherShapesAndATBelowOne) {
  const Matrix a(1, 2);
  const Matrix b(2, 1);
  EXPECT_THROW(AdamW(b, a, a, a, 1, kLr, 0, Params(1)), contract::Error);
  EXPECT_THROW(AdamW(a, b, a, a, 1, kLr, 0, Params(1)), contract::Error);
  EXPECT_THROW(AdamW(a, a, b, a, 1, kLr, 0, Params(1)), contract::Error);
  EXPECT_THROW(AdamW(a, a, a, a, 0, kLr, 0, Params(1)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
