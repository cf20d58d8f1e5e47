// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/softmax_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/ops/inverted_dropout.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(SoftmaxAttention, DividesScoresByTheRootOfTheHeadWidth) {
  // Head width 4: the scores of the second query are (2 ln 3) / 2 and 0, so its probabilities are 3/4 and 1/4.
  const Matrix q(2, 4, {9, 9, 9, 9, 2 * std::log(3.0), 0, 0, 0});
  const Matrix k(2, 4, {1, 0, 0, 0, 0, 1, 0, 0});
  const Matrix v(2, 4, {4, 8, 0, 0, 0, 0, 12, 16});
  const SoftmaxAttentionForwardResult result = SoftmaxAttentionForward(q, k, v, std::nullopt, 0);
  const Matrix expected(2, 4, {4, 8, 0, 0, 3, 6, 3, 4});
  for (int64_t i = 0; i < expected.numel(); ++i) EXPECT_NEAR(result.out[i], expected[i], 1e-14);
}

TEST(SoftmaxAttention, DropsProbabilitiesAfterTheSoftmax) {
  const Matrix zero(2, 1);
  const Matrix v(2, 1, {6, 10});
  const SoftmaxAttentionForwardResult result = SoftmaxAttentionForward(zero, zero, v, Matrix(2, 2, {1, 1, 0, 1}), 0.75);
  EXPECT_EQ(result.probabilities, Matrix(2, 2, {1, 0, 0.5, 0.5}));
  EXPECT_EQ(result.dropped, Matrix(2, 2, {4, 0, 0, 2})) << "what is kept does not sum to 1, and is not made to";
  EXPECT_EQ(result.out, Matrix(2, 1, {24, 20}));
}

TEST(SoftmaxAttention, GradientsAreCentralDifferencesWithAndWithoutDropout) {
  constexpr double kDrop = 0.3;
  constexpr int64_t kPositions = 6;
  const Matrix q = RandomReals(1, kPositions, 3, 2);
  const Matrix k = RandomReals(2, kPositions, 3, 2);
  const Matrix v = RandomReals(3, kPositions, 3, 1);
  const Matrix dout = RandomReals(4, kPositions, 3, 1);
  const Matrix some = KeepMask({1, contract::Site::kDropoutScores, 0, 0, 0}, kPositions, kPositions, kDrop);
  for (const std::optional<Matrix>& mask : {std::optional<Matrix>(), std::optional<Matrix>(some)}) {
    const auto inner = [&](const Matrix& q, const Matrix& k, const Matrix& v) {
      return Inner(dout, SoftmaxAttentionForward(q, k, v, mask, kDrop).out);
    };
    const SoftmaxAttentionBackwardResult result =
        SoftmaxAttentionBackward(dout, q, k, v, mask, kDrop, SoftmaxAttentionForward(q, k, v, mask, kDrop));
    ExpectGradient(
        result.dq, [&](const Matrix& at) { return inner(at, k, v); }, q);
    ExpectGradient(
        result.dk, [&](const Matrix& at) { return inner(q, at, v); }, k);
    ExpectGradient(
        result.dv, [&](const Matrix& at) { return inner(q, k, at); }, v);
  }
}

TEST(SoftmaxAttention, RejectsOtherShapes) {
  EXPECT_THROW(SoftmaxAttentionForward(Matrix(2, 2), Matrix(3, 2), Matrix(2, 2), std::nullopt, 0), contract::Error);
  EXPECT_THROW(SoftmaxAttentionForward(Matrix(2, 2), Matrix(2, 2), Matrix(2, 3), std::nullopt, 0), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
