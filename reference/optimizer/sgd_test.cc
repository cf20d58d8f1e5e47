// SPDX-License-Identifier: Apache-2.0
// SGD against closed forms.
#include "reference/optimizer/sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

constexpr double kLr = 0.125;

// b_t = g (1 − μ^t) / (1 − μ), so p_t = p_0 − lr g Σ_{s ≤ t} (1 − μ^s) / (1 − μ).
TEST(SgdMomentum, WithAConstantGradientIsAGeometricSeries) {
  constexpr double kMomentum = 0.75;
  const Matrix gradient(1, 2, {2, -3});
  SgdMomentumResult state{Matrix(1, 2, {99, 99}), Matrix(1, 2, {1, 1})};
  double moved = 0;
  for (int64_t t = 1; t <= 40; ++t) {
    state = SgdMomentum(gradient, state.moment, state.master, t, kLr, 0, kMomentum, false);
    const double series = (1 - std::pow(kMomentum, static_cast<double>(t))) / (1 - kMomentum);
    moved += series;
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(state.moment[i], gradient[i] * series, 1e-13) << "the moment before the first step is not read";
      EXPECT_NEAR(state.master[i], 1 - kLr * gradient[i] * moved, 1e-11);
    }
  }
}

TEST(SgdMomentum, ContinuesFromTheMomentAfterTheFirstUpdate) {
  const SgdMomentumResult result =
      SgdMomentum(Matrix(1, 1, {2}), Matrix(1, 1, {8}), Matrix(1, 1, {1}), 2, kLr, 0, 0.5, false);
  EXPECT_EQ(result.moment[0], 6);
  EXPECT_EQ(result.master[0], 1 - kLr * 6);
}

TEST(SgdMomentum, DoesNotDampenTheGradientAndAddsDecayToIt) {
  const SgdMomentumResult result =
      SgdMomentum(Matrix(1, 1, {2}), Matrix(1, 1, {8}), Matrix(1, 1, {4}), 3, kLr, 0.25, 0.5, false);
  EXPECT_EQ(result.moment[0], 0.5 * 8 + (2 + 0.25 * 4));
  EXPECT_EQ(result.master[0], 4 - kLr * result.moment[0]) << "not Nesterov's";
}

// g + λ p = 3. In the first update b = 3 whatever was there, later 0.5 · 8 + 3 = 7; the step is along 3 + 0.5 b.
TEST(SgdMomentum, WithNesterovMovesAlongTheGradientAndTheNewMoment) {
  const struct {
    int64_t t;
    double moment, master;
  } rows[] = {{1, 3, 4 - kLr * 4.5}, {2, 7, 4 - kLr * 6.5}, {9, 7, 4 - kLr * 6.5}};
  for (const auto& row : rows) {
    const SgdMomentumResult result =
        SgdMomentum(Matrix(1, 1, {2}), Matrix(1, 1, {8}), Matrix(1, 1, {4}), row.t, kLr, 0.25, 0.5, true);
    EXPECT_EQ(result.moment[0], row.moment) << "t " << row.t;
    EXPECT_EQ(result.master[0], row.master) << "t " << row.t;
  }
}

TEST(Sgd, MovesByTheRateTimesTheGradientAndTheDecay) {
  EXPECT_EQ(Sgd(Matrix(1, 2, {2, -4}), Matrix(1, 2, {1, 1}), kLr, 0), Matrix(1, 2, {0.75, 1.5}));
  EXPECT_EQ(Sgd(Matrix(1, 1, {2}), Matrix(1, 1, {4}), kLr, 0.5), Matrix(1, 1, {3.5}));
}

TEST(Sgd, WithoutGradientDecaysGeometrically) {
  Matrix master(1, 1, {3});
  for (int step = 0; step < 30; ++step) master = Sgd(Matrix(1, 1), master, kLr, 0.5);
  EXPECT_NEAR(master[0], 3 * std::pow(1 - kLr * 0.5, 30), 1e-14);
}

TEST(Sgd, RejectsOtherShapesAndATBelowOne) {
  const Matrix a(1, 2);
  const Matrix b(2, 1);
  EXPECT_THROW(Sgd(b, a, kLr, 0), contract::Error);
  EXPECT_THROW(SgdMomentum(b, a, a, 1, kLr, 0, 0.5, false), contract::Error);
  EXPECT_THROW(SgdMomentum(a, b, a, 1, kLr, 0, 0.5, false), contract::Error);
  EXPECT_THROW(SgdMomentum(a, a, a, 0, kLr, 0, 0.5, false), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
