// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/causal_softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CausalSoftmax, SharesEachRowOverTheKeysUpToTheQuery) {
  const double l2 = std::log(2.0);
  const Matrix p = CausalSoftmaxForward(Matrix(3, 3, {5, 9, 9, 0, l2, 9, l2, 0, l2}));
  const Matrix expected(3, 3, {1, 0, 0, 1.0 / 3, 2.0 / 3, 0, 0.4, 0.2, 0.4});
  for (int64_t i = 0; i < p.numel(); ++i) EXPECT_NEAR(p[i], expected[i], 1e-15);
}

TEST(CausalSoftmax, DoesNotReadAboveTheDiagonal) {
  const Matrix p = CausalSoftmaxForward(Matrix(2, 2, {1, kNan, 1, 1}));
  EXPECT_EQ(p, Matrix(2, 2, {1, 0, 0.5, 0.5}));
  EXPECT_EQ(CausalSoftmaxBackward(Matrix(2, 2, {4, kNan, 1, 3}), p), Matrix(2, 2, {0, 0, -0.5, 0.5}));
}

TEST(CausalSoftmax, SurvivesScoresWhoseExpOverflows) {
  const Matrix p = CausalSoftmaxForward(Matrix(2, 2, {1e6, 0, 1e6, 1e6}));
  EXPECT_EQ(p, Matrix(2, 2, {1, 0, 0.5, 0.5}));
}

TEST(CausalSoftmax, GradientIsCentralDifferences) {
  for (const int64_t size : {2, 5, 8}) {
    const Matrix s = RandomReals(1, size, size, 2);
    const Matrix dp = RandomReals(2, size, size, 1);
    ExpectGradient(
        CausalSoftmaxBackward(dp, CausalSoftmaxForward(s)),
        [&](const Matrix& at) { return Inner(dp, CausalSoftmaxForward(at)); }, s);
  }
}

TEST(CausalSoftmax, RejectsOtherShapes) {
  EXPECT_THROW(CausalSoftmaxForward(Matrix(2, 3)), contract::Error);
  EXPECT_THROW(CausalSoftmaxBackward(Matrix(2, 2), Matrix(3, 3)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
