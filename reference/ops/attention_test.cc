// SPDX-License-Identifier: Apache-2.0
// With folds off, attention is linear in each of q, k and v: its adjoint is tested exactly on integers. The folds'
// slopes are tested on the whole model (exact_model_test, exact_model_golden_test).
#include "reference/ops/attention.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/ops/block.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(Attention, TwoPositionsAreAsWorkedByHand) {
  const Matrix q(2, 1, {2, 1});
  const Matrix k(2, 1, {1, -3});
  const Matrix v(2, 1, {1, 2});
  const AttentionForwardResult result = AttentionForward(q, k, v, Fold::Triangle(2));
  EXPECT_EQ(result.scores.value, Matrix(2, 2, {2, -6, 1, -3}));
  EXPECT_EQ(result.weights, Matrix(2, 2, {2, 0, 1, -1}));  // fold(−6; 2) is 2: the 0 is the causal mask's
  EXPECT_EQ(result.mix.value, Matrix(2, 1, {2, -1}));
  EXPECT_EQ(result.mix.magnitude, Matrix(2, 1, {2, 3}));
  EXPECT_EQ(result.out, Matrix(2, 1, {2, -1}));
}

TEST(Attention, APositionSeesItselfAndThePastOnly) {
  const Matrix q = RandomIntegers(1, 5, 3, 2);
  const Matrix k = RandomIntegers(2, 5, 3, 2);
  const Matrix v = RandomIntegers(3, 5, 3, 2);
  const Matrix out = AttentionForward(q, k, v, Fold::Identity()).out;
  Matrix k_other = k;
  Matrix v_other = v;
  for (int64_t c = 0; c < 3; ++c) {
    k_other(3, c) += 1;
    v_other(3, c) += 5;
  }
  const Matrix out_other = AttentionForward(q, k_other, v_other, Fold::Identity()).out;
  for (int64_t s = 0; s < 3; ++s)
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(out(s, c), out_other(s, c)) << "position " << s;
  EXPECT_NE(Take(out, {3, 0, 1, 3}), Take(out_other, {3, 0, 1, 3})) << "position 3 sees itself";
  EXPECT_NE(Take(out, {4, 0, 1, 3}), Take(out_other, {4, 0, 1, 3})) << "position 4 sees position 3";
}

TEST(Attention, AdjointWithoutFoldsIsExactForEveryShape) {
  const Fold id = Fold::Identity();
  const int64_t shapes[][2] = {{1, 1}, {2, 1}, {1, 3}, {5, 3}, {7, 4}};
  for (const auto& [positions, width] : shapes) {
    const Matrix q = RandomIntegers(1, positions, width, 5);
    const Matrix k = RandomIntegers(2, positions, width, 5);
    const Matrix v = RandomIntegers(3, positions, width, 5);
    const Matrix dout = RandomIntegers(4, positions, width, 5);
    const Matrix d = RandomIntegers(5, positions, width, 5);
    const AttentionForwardResult forward = AttentionForward(q, k, v, id);
    const AttentionBackwardResult backward = AttentionBackward(dout, q, k, v, forward, id, id);
    const auto difference = [&](const Matrix& q2, const Matrix& k2, const Matrix& v2) {
      return Inner(dout, Minus(AttentionForward(q2, k2, v2, id).out, forward.out));
    };
    EXPECT_EQ(difference(Plus(q, d), k, v), Inner(backward.dq.value, d));
    EXPECT_EQ(difference(q, Plus(k, d), v), Inner(backward.dk.value, d));
    EXPECT_EQ(difference(q, k, Plus(v, d)), Inner(backward.dv.value, d));
  }
}

TEST(Attention, RejectsUnequalShapes) {
  EXPECT_THROW(AttentionForward(Matrix(2, 2), Matrix(3, 2), Matrix(2, 2), Fold::Identity()), contract::Error);
  EXPECT_THROW(AttentionForward(Matrix(2, 2), Matrix(2, 2), Matrix(2, 3), Fold::Identity()), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
