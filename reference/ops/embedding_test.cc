// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/embedding.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

// Two samples of three positions; token 1 is absent, token 2 comes in both samples and twice in one.
const std::vector<int64_t> kTokens = {2, 0, 2, 3, 2, 0};
constexpr int64_t kVocab = 4;
constexpr int64_t kPositions = 3;

TEST(Embedding, AddsTheRowOfTheTokenAndTheRowOfThePosition) {
  const Sum x = EmbeddingForward(Matrix(2, 2, {1, -2, 3, 4}), Matrix(2, 2, {10, 20, 30, -40}), {1, 0, 0, 1});
  EXPECT_EQ(x.value, Matrix(4, 2, {13, 24, 31, -42, 11, 18, 33, -36}));
  EXPECT_EQ(x.magnitude, Matrix(4, 2, {13, 24, 31, 42, 11, 22, 33, 44}));
}

TEST(Embedding, OfTokensAloneIsTheirRowAndZeroWhereThereIsNone) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Matrix embed(3, 2, {1, -2, 3, 4, infinity, 5});
  EXPECT_EQ(TokenEmbeddingForward(embed, {1, kNoToken, 0, 1}), Matrix(4, 2, {3, 4, 0, 0, 1, -2, 3, 4}));
  const Matrix dx(4, 2, {1, 2, 10, 20, 100, 200, 1000, 2000});
  EXPECT_EQ(TokenEmbeddingBackward(dx, {1, kNoToken, 0, 1}, 3).value, Matrix(3, 2, {100, 200, 1001, 2002, 0, 0}));
}

TEST(Embedding, OfTokensAloneHasAnExactAdjoint) {
  constexpr int64_t kWidth = 5;
  const std::vector<int64_t> tokens = {2, 0, 2, kNoToken, 3, kNoToken};
  const Matrix embed = RandomIntegers(1, kVocab, kWidth, 9);
  const Matrix dx = RandomIntegers(2, 6, kWidth, 9);
  EXPECT_EQ(Inner(dx, TokenEmbeddingForward(embed, tokens)),
            Inner(TokenEmbeddingBackward(dx, tokens, kVocab).value, embed));
}

TEST(Embedding, AdjointIsExact) {
  constexpr int64_t kWidth = 5;
  const Matrix embed = RandomIntegers(1, kVocab, kWidth, 9);
  const Matrix pos = RandomIntegers(2, kPositions, kWidth, 9);
  const Matrix dx = RandomIntegers(3, 6, kWidth, 9);
  const Matrix x = EmbeddingForward(embed, pos, kTokens).value;
  const Matrix d_embed = RandomIntegers(4, kVocab, kWidth, 9);
  const Matrix d_pos = RandomIntegers(5, kPositions, kWidth, 9);
  EXPECT_EQ(Inner(dx, Minus(EmbeddingForward(Plus(embed, d_embed), pos, kTokens).value, x)),
            Inner(TokenEmbeddingBackward(dx, kTokens, kVocab).value, d_embed));
  EXPECT_EQ(Inner(dx, Minus(EmbeddingForward(embed, Plus(pos, d_pos), kTokens).value, x)),
            Inner(PositionEmbeddingBackward(dx, kPositions).value, d_pos));
}

TEST(Embedding, GradientsKeepTheMagnitudeOfTermsThatCancel) {
  const Matrix dx(4, 1, {3, 1, -3, 2});
  EXPECT_EQ(TokenEmbeddingBackward(dx, {1, 0, 1, 0}, 3).value, Matrix(3, 1, {3, 0, 0}));
  EXPECT_EQ(TokenEmbeddingBackward(dx, {1, 0, 1, 0}, 3).magnitude, Matrix(3, 1, {3, 6, 0}));
  EXPECT_EQ(PositionEmbeddingBackward(dx, 2).value, Matrix(2, 1, {0, 3}));
  EXPECT_EQ(PositionEmbeddingBackward(dx, 2).magnitude, Matrix(2, 1, {6, 3}));
}

TEST(Embedding, RejectsTokensOutsideTheVocabularyAndHalfSamples) {
  EXPECT_THROW(EmbeddingForward(Matrix(2, 1), Matrix(1, 1), {2}), contract::Error);
  EXPECT_THROW(EmbeddingForward(Matrix(2, 1), Matrix(1, 1), {-1}), contract::Error);
  EXPECT_THROW(EmbeddingForward(Matrix(2, 1), Matrix(1, 2), {0}), contract::Error);
  EXPECT_THROW(TokenEmbeddingForward(Matrix(2, 1), {2}), contract::Error);
  EXPECT_THROW(TokenEmbeddingForward(Matrix(2, 1), {-2}), contract::Error);
  EXPECT_THROW(TokenEmbeddingBackward(Matrix(1, 1), {2}, 2), contract::Error);
  EXPECT_THROW(TokenEmbeddingBackward(Matrix(2, 1), {0}, 2), contract::Error);
  EXPECT_THROW(PositionEmbeddingBackward(Matrix(3, 1), 2), contract::Error);
}

}  // namespace
}  // namespace plumbline::reference
