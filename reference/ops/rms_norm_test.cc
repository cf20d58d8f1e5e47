// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/rms_norm.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

constexpr double kEpsilon = 1e-5;

TEST(RmsNorm, DividesByTheRootOfTheMeanSquarePlusEpsilonAndTakesNoMeanAway) {
  // Squares 1 + 9 + 25 + 1 = 36, mean 9; with an epsilon of 7 the root is 4. The mean is 2, the variance 5.
  const Matrix x(1, 4, {1, 3, 5, -1});
  const Matrix weight(1, 4, {1, 2, 4, -8});
  EXPECT_EQ(RmsNormForward(x, weight, 7).y, Matrix(1, 4, {0.25, 1.5, 5, 2}));
}

TEST(RmsNorm, NormalizesEachRowByItselfAndLeavesZeroWhereItIs) {
  const Matrix ones(1, 2, {1, 1});
  const Matrix y = RmsNormForward(Matrix(3, 2, {3, 3, 0, 0, -8, 8}), ones, 1e-30).y;
  const Matrix expected(3, 2, {1, 1, 0, 0, -1, 1});
  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_DOUBLE_EQ(y[i], expected[i]) << i;
}

TEST(RmsNorm, GradientsAreCentralDifferences) {
  for (const int64_t width : {1, 2, 3, 7}) {
    for (const double epsilon : {kEpsilon, 0.5}) {
      const Matrix x = RandomReals(1, 5, width, 2);
      const Matrix weight = RandomReals(2, 1, width, 1);
      const Matrix dy = RandomReals(3, 5, width, 1);
      const auto inner = [&](const Matrix& x, const Matrix& weight) {
        return Inner(dy, RmsNormForward(x, weight, epsilon).y);
      };
      const RmsNormBackwardResult result = RmsNormBackward(dy, weight, RmsNormForward(x, weight, epsilon));
      // With one channel and a small epsilon every row is ±1 and hardly moves.
      if (width > 1 || epsilon > kEpsilon)
        ExpectGradient(
            result.dx, [&](const Matrix& at) { return inner(at, weight); }, x);
      ExpectGradient(
          result.dweight, [&](const Matrix& at) { return inner(x, at); }, weight);
    }
  }
}

TEST(RmsNorm, RejectsNoChannelsNoEpsilonAndOtherShapes) {
  EXPECT_THROW(RmsNormForward(Matrix(1, 0), Matrix(1, 0), kEpsilon), contract::Error);
  EXPECT_THROW(RmsNormForward(Matrix(1, 2), Matrix(1, 2), 0), contract::Error);
  EXPECT_THROW(RmsNormForward(Matrix(1, 2), Matrix(1, 3), kEpsilon), contract::Error);
  EXPECT_THROW(RmsNormForward(Matrix(1, 2), Matrix(2, 2), kEpsilon), contract::Error);
  const RmsNormForwardResult forward = RmsNormForward(Matrix(2, 3), Matrix(1, 3), kEpsilon);
  EXPECT_THROW(RmsNormBackward(Matrix(3, 2), Matrix(1, 3), forward), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
