// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/swiglu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(SwiGlu, GatesTheSecondByTheFirst) {
  // σ(ln 3) = 1 / (1 + 1/3) = 3/4 and σ(−ln 3) = 1/4.
  const double z = std::log(3.0);
  const Matrix y = SwiGluForward(Matrix(1, 3, {z, -z, 0}), Matrix(1, 3, {8, 8, 8}));
  EXPECT_DOUBLE_EQ(y[0], 6 * z);
  EXPECT_DOUBLE_EQ(y[1], -2 * z);
  EXPECT_EQ(y[2], 0);
}

TEST(SwiGlu, IsFlatFarBelowZeroAndTheProductFarAbove) {
  const Matrix gate(1, 3, {-40, 40, -800});
  const Matrix up(1, 3, {3, 3, 3});
  const Matrix y = SwiGluForward(gate, up);
  EXPECT_NEAR(y[0], 0, 1e-15);
  EXPECT_EQ(y[1], 120);
  EXPECT_EQ(y[2], 0) << "although e^800 overflows";
  const SwiGluBackwardResult result = SwiGluBackward(Matrix(1, 3, {2, 2, 2}), gate, up);
  EXPECT_NEAR(result.dgate[0], 0, 1e-15);
  EXPECT_EQ(result.dgate[1], 6);
  EXPECT_EQ(result.dgate[2], 0);
  EXPECT_EQ(result.dup[1], 80);
}

TEST(SwiGlu, GradientsAreCentralDifferences) {
  const Matrix gate = RandomReals(1, 7, 11, 3);
  const Matrix up = RandomReals(2, 7, 11, 2);
  const Matrix dy = RandomReals(3, 7, 11, 1);
  const SwiGluBackwardResult result = SwiGluBackward(dy, gate, up);
  ExpectGradient(
      result.dgate, [&](const Matrix& at) { return Inner(dy, SwiGluForward(at, up)); }, gate);
  ExpectGradient(
      result.dup, [&](const Matrix& at) { return Inner(dy, SwiGluForward(gate, at)); }, up);
}

TEST(SwiGlu, RejectsOtherShapes) {
  EXPECT_THROW(SwiGluForward(Matrix(1, 2), Matrix(2, 1)), contract::Error);
  EXPECT_THROW(SwiGluBackward(Matrix(1, 2), Matrix(1, 2), Matrix(2, 1)), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
