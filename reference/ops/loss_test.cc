// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/loss.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(Loss, OfEqualLogitsTheSmallestIndexIsBest) {
  const Matrix logits(3, 3, {1, 4, 4, 7, 7, 7, -3, -5, -3});
  EXPECT_EQ(LossForward(logits, {0, 0, 0}, {1, 1, 1}).best, (std::vector<int64_t>{1, 0, 0}));
}

TEST(Loss, WeighsMarginsAndDividesByTheNumberOfWeightedTokens) {
  const Matrix logits(3, 2, {1, 4, 9, 2, 0, 8});
  const std::vector<int64_t> labels = {0, 1, 0};  // margins 3, 7, 8
  const std::vector<double> weights = {2, 10, 0};
  const LossForwardResult forward = LossForward(logits, labels, weights);
  EXPECT_EQ(forward.num_weighted_tokens, 2);
  EXPECT_EQ(forward.loss, 1 * 3 + 5 * 7);
  EXPECT_EQ(LossBackward(forward, labels, weights, 2), Matrix(3, 2, {-1, 1, 5, -5, 0, 0}));
}

TEST(Loss, ALabelThatIsBestHasNoLossAndNoGradient) {
  const Matrix logits(1, 3, {1, 5, 2});
  const LossForwardResult forward = LossForward(logits, {1}, {1});
  EXPECT_EQ(forward.loss, 0);
  EXPECT_EQ(LossBackward(forward, {1}, {1}, 3), Matrix(1, 3));
}

TEST(Loss, GradientIsExactWhileTheBestTokenStays) {
  constexpr int64_t kTokens = 9;
  constexpr int64_t kVocab = 5;
  // Multiples of 100: differences below 50 leave every best token where it is.
  Matrix logits = RandomIntegers(1, kTokens, kVocab, 9);
  for (int64_t i = 0; i < logits.numel(); ++i) logits[i] = 100 * logits[i] - 10 * static_cast<double>(i % kVocab);
  const Matrix d = RandomIntegers(2, kTokens, kVocab, 4);
  const std::vector<int64_t> labels = {0, 1, 2, 3, 4, 0, 1, 2, 3};
  const std::vector<double> weights = {8, 0, 40, 8, 8, 8, 40, 8, 40};  // N = 8
  const LossForwardResult forward = LossForward(logits, labels, weights);
  EXPECT_EQ(forward.num_weighted_tokens, 8);
  const LossForwardResult other = LossForward(Plus(logits, d), labels, weights);
  ASSERT_EQ(other.best, forward.best);
  EXPECT_EQ(other.loss - forward.loss, Inner(LossBackward(forward, labels, weights, kVocab), d));
}

TEST(Loss, RejectsAStepWithoutWeightAndUnequalSizes) {
  try {
    LossForward(Matrix(2, 2), {0, 0}, {0, 0});
    FAIL() << "accepted";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kInvalidArgument);
  }
  EXPECT_THROW(LossForward(Matrix(2, 2), {0}, {1}), contract::Error);
  EXPECT_THROW(LossForward(Matrix(2, 2), {0, 0}, {1}), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
