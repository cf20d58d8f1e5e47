// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheVocabulary) {
  EXPECT_NEAR(CrossEntropyForward(Matrix(2, 7), {0, 6}, {1, 1}).loss, std::log(7.0), 1e-15);
}

TEST(CrossEntropy, IsTheWeightedMeanOverTheWholeBatchNotAMeanOfMeans) {
  // ce is ln 4 − ln 3 for label 0 and ln 4 for label 1.
  const Matrix logits(3, 2, {std::log(3.0), 0, std::log(3.0), 0, std::log(3.0), 0});
  const CrossEntropyForwardResult result = CrossEntropyForward(logits, {0, 1, 0}, {1, 1, 0});
  EXPECT_DOUBLE_EQ(result.weight_sum, 2);
  EXPECT_NEAR(result.loss, std::log(4.0) - std::log(3.0) / 2, 1e-15);
}

TEST(CrossEntropy, DoesNotChangeWhenALogitsRowIsShiftedFar) {
  const Matrix logits(1, 3, {1, 2, 3});
  const Matrix shifted(1, 3, {100'001, 100'002, 100'003});
  EXPECT_NEAR(CrossEntropyForward(logits, {1}, {1}).loss, CrossEntropyForward(shifted, {1}, {1}).loss, 1e-10);
}

TEST(CrossEntropy, GivesTokensWithoutWeightNoGradient) {
  const Matrix logits = RandomReals(1, 3, 4, 2);
  const std::vector<double> weights = {1, 0, 1};
  const Matrix dlogits = CrossEntropyBackward(CrossEntropyForward(logits, {0, 1, 3}, weights), {0, 1, 3}, weights);
  for (int64_t v = 0; v < 4; ++v) EXPECT_EQ(dlogits(1, v), 0);
}

TEST(CrossEntropy, GradientIsCentralDifferences) {
  const Matrix logits = RandomReals(1, 6, 5, 3);
  const std::vector<int64_t> labels = {0, 4, 2, 2, 1, 3};
  const std::vector<double> weights = {1, 0, 1, 1, 0, 1};
  ExpectGradient(
      CrossEntropyBackward(CrossEntropyForward(logits, labels, weights), labels, weights),
      [&](const Matrix& at) { return CrossEntropyForward(at, labels, weights).loss; }, logits);
}

TEST(CrossEntropy, RejectsABatchWithoutWeightAndOtherSizes) {
  EXPECT_THROW(CrossEntropyForward(Matrix(2, 3), {0, 1}, {0, 0}), contract::Error);
  EXPECT_THROW(CrossEntropyForward(Matrix(2, 3), {0}, {1, 1}), contract::Error);
  EXPECT_THROW(CrossEntropyForward(Matrix(2, 3), {0, 1}, {1}), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
