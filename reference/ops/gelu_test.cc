// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/gelu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(Gelu, IsTheTanhFormNotTheErrorFunction) {
  // Computed to twelve digits from the formula; the form with erf gives 0.841344746069 at 1.
  EXPECT_NEAR(GeluForward(Matrix(1, 1, {1}))[0], 0.841191990608, 1e-12);
  EXPECT_EQ(GeluForward(Matrix(1, 1, {0}))[0], 0);
}

TEST(Gelu, HasTheOddPartOfHalfX) {
  // y(x) − y(−x) = x, since tanh is odd.
  const Matrix x = RandomReals(1, 3, 5, 3);
  Matrix negative = x;
  for (int64_t i = 0; i < x.numel(); ++i) negative[i] = -x[i];
  const Matrix y = Minus(GeluForward(x), GeluForward(negative));
  for (int64_t i = 0; i < x.numel(); ++i) EXPECT_NEAR(y[i], x[i], 1e-15);
}

TEST(Gelu, IsFlatFarBelowZeroAndTheIdentityFarAbove) {
  EXPECT_EQ(GeluForward(Matrix(1, 2, {-40, 40})), Matrix(1, 2, {0, 40}));
  EXPECT_EQ(GeluBackward(Matrix(1, 2, {3, 3}), Matrix(1, 2, {-40, 40})), Matrix(1, 2, {0, 3}));
}

TEST(Gelu, GradientIsCentralDifferences) {
  const Matrix x = RandomReals(1, 7, 11, 3);
  const Matrix dy = RandomReals(2, 7, 11, 1);
  ExpectGradient(
      GeluBackward(dy, x), [&](const Matrix& at) { return Inner(dy, GeluForward(at)); }, x);
}

TEST(Gelu, RejectsOtherShapes) { EXPECT_THROW(GeluBackward(Matrix(1, 2), Matrix(2, 1)), contract::Error); }

}  // namespace
}  // namespace plumbline::reference
