// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/sum.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

TEST(Sum, KeepsTheMagnitudeOfTermsThatCancel) {
  const Sum sum = Add(Matrix(1, 3, {5, -2, 0}), Matrix(1, 3, {-5, -3, 4}));
  EXPECT_EQ(sum.value, Matrix(1, 3, {0, -5, 4}));
  EXPECT_EQ(sum.magnitude, Matrix(1, 3, {10, 5, 4}));
}

TEST(Sum, JoinedSumsAddTheirMagnitudes) {
  Sum sum = Add(Matrix(1, 1, {5}), Matrix(1, 1, {-5}));
  sum += Add(Matrix(1, 1, {-1}), Matrix(1, 1, {-2}));
  EXPECT_EQ(sum.value, Matrix(1, 1, {-3}));
  EXPECT_EQ(sum.magnitude, Matrix(1, 1, {13}));
}

TEST(Sum, RejectsUnequalShapes) {
  EXPECT_THROW(Add(Matrix(1, 2), Matrix(2, 1)), contract::Error);
  Sum sum(1, 2);
  EXPECT_THROW(sum += Sum(2, 1), contract::Error);
}

TEST(Matrix, TransposeExchangesRowsAndColumns) {
  EXPECT_EQ(Transpose(Matrix(2, 3, {1, 2, 3, 4, 5, 6})), Matrix(3, 2, {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Transpose(Matrix(0, 3)), Matrix(3, 0));
}

TEST(Matrix, RejectsAWrongNumberOfValues) { EXPECT_THROW(Matrix(2, 2, {1, 2, 3}), contract::Error); }

TEST(Matrix, HadamardMultipliesElementByElement) {
  EXPECT_EQ(Hadamard(Matrix(1, 3, {1, -2, 3}), Matrix(1, 3, {4, 5, -6})), Matrix(1, 3, {4, -10, -18}));
  EXPECT_THROW(Hadamard(Matrix(1, 2), Matrix(2, 1)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
