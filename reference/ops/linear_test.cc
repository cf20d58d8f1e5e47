// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/linear.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(Linear, AddsTheBiasToEachRowOfTheProduct) {
  EXPECT_EQ(LinearForward(Matrix(2, 2, {1, 2, 3, 4}), Matrix(2, 3, {1, 0, -1, 2, 1, 0}), Matrix(1, 3, {10, 20, 30})),
            Matrix(2, 3, {15, 22, 29, 21, 24, 27}));
}

TEST(Linear, GradientsAreCentralDifferences) {
  const Matrix x = RandomReals(1, 5, 3, 1);
  const Matrix weight = RandomReals(2, 3, 4, 1);
  const Matrix bias = RandomReals(3, 1, 4, 1);
  const Matrix dy = RandomReals(4, 5, 4, 1);
  const LinearBackwardResult result = LinearBackward(dy, x, weight);
  ExpectGradient(
      result.dx, [&](const Matrix& at) { return Inner(dy, LinearForward(at, weight, bias)); }, x);
  ExpectGradient(
      result.dweight, [&](const Matrix& at) { return Inner(dy, LinearForward(x, at, bias)); }, weight);
  ExpectGradient(
      result.dbias, [&](const Matrix& at) { return Inner(dy, LinearForward(x, weight, at)); }, bias);
}

TEST(Linear, RejectsShapesThatDoNotFit) {
  EXPECT_THROW(LinearForward(Matrix(2, 2), Matrix(3, 1), Matrix(1, 1)), contract::Error);
  EXPECT_THROW(LinearForward(Matrix(2, 2), Matrix(2, 1), Matrix(1, 2)), contract::Error);
  EXPECT_THROW(LinearForward(Matrix(2, 2), Matrix(2, 2), Matrix(2, 2)), contract::Error);
  EXPECT_THROW(LinearBackward(Matrix(1, 2), Matrix(2, 2), Matrix(2, 2)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
