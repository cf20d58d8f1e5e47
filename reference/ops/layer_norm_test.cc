// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

constexpr double kEpsilon = 1e-5;

TEST(LayerNorm, DividesByTheBiasedVarianceWithEpsilonUnderTheRoot) {
  // Mean 4; squares of the distances 9 + 1 + 1 + 9 = 20; biased variance 5, unbiased 20/3.
  const Matrix x(1, 4, {1, 3, 5, 7});
  const Matrix weight(1, 4, {1, 2, 3, -4});
  const Matrix bias(1, 4, {0, 10, 20, 30});
  constexpr double kLargeEpsilon = 4;  // so that the root is 3
  const Matrix y = LayerNormForward(x, weight, bias, kLargeEpsilon).y;
  EXPECT_DOUBLE_EQ(y[0], -1.0);
  EXPECT_DOUBLE_EQ(y[1], -2.0 / 3 + 10);
  EXPECT_DOUBLE_EQ(y[2], 3.0 / 3 + 20);
  EXPECT_DOUBLE_EQ(y[3], -4.0 + 30);
}

TEST(LayerNorm, OfAConstantRowIsTheBias) {
  const Matrix bias(1, 3, {1, -2, 3});
  EXPECT_EQ(LayerNormForward(Matrix(1, 3, {7, 7, 7}), Matrix(1, 3, {5, 5, 5}), bias, kEpsilon).y, bias);
}

TEST(LayerNorm, GradientsAreCentralDifferences) {
  for (const int64_t width : {2, 3, 7}) {
    for (const double epsilon : {kEpsilon, 0.5}) {
      const Matrix x = RandomReals(1, 5, width, 2);
      const Matrix weight = RandomReals(2, 1, width, 1);
      const Matrix bias = RandomReals(3, 1, width, 1);
      const Matrix dy = RandomReals(4, 5, width, 1);
      const auto inner = [&](const Matrix& x, const Matrix& weight, const Matrix& bias) {
        return Inner(dy, LayerNormForward(x, weight, bias, epsilon).y);
      };
      const LayerNormBackwardResult result = LayerNormBackward(dy, weight, LayerNormForward(x, weight, bias, epsilon));
      // With two channels and a small epsilon every row is ±1 and hardly moves: only its size can be checked there.
      if (width > 2 || epsilon > kEpsilon)
        ExpectGradient(
            result.dx, [&](const Matrix& at) { return inner(at, weight, bias); }, x);
      ExpectGradient(
          result.dweight, [&](const Matrix& at) { return inner(x, at, bias); }, weight);
      ExpectGradient(
          result.dbias, [&](const Matrix& at) { return inner(x, weight, at); }, bias);
    }
  }
}

TEST(LayerNorm, RejectsNoChannelsNoEpsilonAndOtherShapes) {
  EXPECT_THROW(LayerNormForward(Matrix(1, 0), Matrix(1, 0), Matrix(1, 0), kEpsilon), contract::Error);
  EXPECT_THROW(LayerNormForward(Matrix(1, 2), Matrix(1, 2), Matrix(1, 2), 0), contract::Error);
  EXPECT_THROW(LayerNormForward(Matrix(1, 2), Matrix(1, 3), Matrix(1, 3), kEpsilon), contract::Error);
  EXPECT_THROW(LayerNormForward(Matrix(1, 2), Matrix(1, 2), Matrix(1, 3), kEpsilon), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
