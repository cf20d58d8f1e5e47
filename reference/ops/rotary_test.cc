// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

void ExpectNear(const Matrix& a, const Matrix& b) {
  ASSERT_TRUE(a.SameShape(b));
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14) << i;
}

TEST(Rotary, TurnsChannelsHalfAHeadApartAndNotNeighbours) {
  // θ = 4 and D = 4: the angles of position 1 are 1 and 4^(−1/2) = 1/2.
  const Matrix y = RotaryForward(Matrix(2, 4, {1, 2, 3, 4, 1, 0, 0, 2}), {2, 4, 4});
  ExpectNear(y, Matrix(2, 4, {1, 2, 3, 4, std::cos(1), -2 * std::sin(0.5), std::sin(1), 2 * std::cos(0.5)}));
}

TEST(Rotary, IsAProductWithAUnitNumberInEachHeadWithPositionsCountedFromZeroInEachSample) {
  const RotaryShape shape{3, 6, 100};
  const Matrix y = RandomReals(1, 2 * 3, 2 * 6, 1);
  Matrix expected(6, 12);
  for (int64_t sample = 0; sample < 2; ++sample) {
    for (int64_t t = 0; t < 3; ++t) {
      for (int64_t head = 0; head < 2; ++head) {
        for (int64_t i = 0; i < 3; ++i) {
          const int64_t row = 3 * sample + t;
          const int64_t col = 6 * head + i;
          const double angle = static_cast<double>(t) / std::exp(std::log(100.0) * static_cast<double>(i) / 3);
          const std::complex<double> z = std::complex<double>(y(row, col), y(row, col + 3)) * std::polar(1.0, angle);
          expected(row, col) = z.real();
          expected(row, col + 3) = z.imag();
        }
      }
    }
  }
  ExpectNear(RotaryForward(y, shape), expected);
}

TEST(Rotary, MakesScoresThatDependOnTheDistanceOfPositionsOnly) {
  const RotaryShape shape{9, 6, 10000};
  const Matrix q = RandomReals(1, 1, 6, 1);
  const Matrix k = RandomReals(2, 1, 6, 1);
  Matrix queries(9, 6), keys(9, 6);
  for (int64_t t = 0; t < 9; ++t) {
    for (int64_t c = 0; c < 6; ++c) {
      queries(t, c) = q[c];
      keys(t, c) = k[c];
    }
  }
  queries = RotaryForward(queries, shape);
  keys = RotaryForward(keys, shape);
  const auto score = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t c = 0; c < 6; ++c) sum += queries(a, c) * keys(b, c);
    return sum;
  };
  EXPECT_NEAR(score(3, 1), score(8, 6), 1e-14);
  EXPECT_GT(std::abs(score(3, 1) - score(1, 3)), 1e-3);
}

TEST(Rotary, GradientIsCentralDifferencesAndUndoesTheRotation) {
  for (const RotaryShape& shape : {RotaryShape{3, 2, 10000}, RotaryShape{1, 4, 7}, RotaryShape{5, 6, 0.5}}) {
    const Matrix y = RandomReals(1, 2 * shape.positions, 3 * shape.head_width, 1);
    const Matrix dy = RandomReals(2, y.rows(), y.cols(), 1);
    ExpectGradient(
        RotaryBackward(dy, shape), [&](const Matrix& at) { return Inner(dy, RotaryForward(at, shape)); }, y);
    ExpectNear(RotaryBackward(RotaryForward(y, shape), shape), y);
  }
}

TEST(Rotary, RejectsOddHeadsPartsOfHeadsAndSamplesAndNoTheta) {
  EXPECT_THROW(RotaryForward(Matrix(2, 3), {2, 3, 1}), contract::Error);
  EXPECT_THROW(RotaryForward(Matrix(2, 6), {2, 4, 1}), contract::Error);
  EXPECT_THROW(RotaryForward(Matrix(3, 4), {2, 4, 1}), contract::Error);
  EXPECT_THROW(RotaryForward(Matrix(2, 4), {0, 4, 1}), contract::Error);
  EXPECT_THROW(RotaryForward(Matrix(2, 4), {2, 0, 1}), contract::Error);
  EXPECT_THROW(RotaryBackward(Matrix(2, 4), {2, 4, 0}), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
