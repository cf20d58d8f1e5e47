// SPDX-License-Identifier: Apache-2.0
// The product by hand, and the adjoint rule exactly: on integers a bilinear map has no second difference, so
// ⟨dc, (a + d) b − a b⟩ = ⟨dc bᵀ, d⟩ holds bit for bit.
#include "reference/ops/matmul.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(MatMul, GivesProductsAndMagnitudesThatAreWorkedByHand) {
  const Sum c = MatMul(Matrix(2, 2, {1, -2, 3, 4}), Matrix(2, 2, {5, 0, -6, 1}));
  EXPECT_EQ(c.value, Matrix(2, 2, {17, -2, -9, 4}));
  EXPECT_EQ(c.magnitude, Matrix(2, 2, {17, 2, 39, 4}));
}

TEST(MatMul, OfAnEmptyInnerDimensionIsZero) {
  EXPECT_EQ(MatMul(Matrix(2, 0), Matrix(0, 3)).value, Matrix(2, 3));
  EXPECT_EQ(MatMul(Matrix(0, 2), Matrix(2, 3)).value, Matrix(0, 3));
}

TEST(MatMul, RejectsUnequalInnerDimensions) { EXPECT_THROW(MatMul(Matrix(2, 3), Matrix(2, 3)), contract::Error); }

TEST(MatMul, AdjointIsExactForEveryShape) {
  const int64_t shapes[][3] = {{1, 1, 1}, {1, 5, 1}, {3, 1, 2}, {5, 7, 3}, {13, 11, 17}};
  for (const auto& [rows, inner, cols] : shapes) {
    const Matrix a = RandomIntegers(1, rows, inner, 9);
    const Matrix b = RandomIntegers(2, inner, cols, 9);
    const Matrix dc = RandomIntegers(3, rows, cols, 9);
    const Matrix d_a = RandomIntegers(4, rows, inner, 9);
    const Matrix d_b = RandomIntegers(5, inner, cols, 9);
    const Matrix c = MatMul(a, b).value;
    EXPECT_EQ(Inner(dc, Minus(MatMul(Plus(a, d_a), b).value, c)), Inner(MatMul(dc, Transpose(b)).value, d_a));
    EXPECT_EQ(Inner(dc, Minus(MatMul(a, Plus(b, d_b)).value, c)), Inner(MatMul(Transpose(a), dc).value, d_b));
  }
}

TEST(MatMul, MagnitudeIsTheProductOfAbsoluteValues) {
  const Matrix a = RandomIntegers(1, 5, 7, 9);
  const Matrix b = RandomIntegers(2, 7, 3, 9);
  const auto abs = [](Matrix m) {
    for (int64_t i = 0; i < m.numel(); ++i) m[i] = m[i] < 0 ? -m[i] : m[i];
    return m;
  };
  EXPECT_EQ(MatMul(a, b).magnitude, MatMul(abs(a), abs(b)).value);
}

}  // namespace
}  // namespace plumbline::reference
