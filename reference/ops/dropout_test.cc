// SPDX-License-Identifier: Apache-2.0
#include "reference/ops/dropout.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {
namespace {

using contract::Site;

TEST(DropoutMask, IsTheTopBitOfTheDrawOfEachElement) {
  constexpr int64_t kTokens = 6;
  constexpr int64_t kWidth = 5;
  const Matrix mask = DropoutMask(11, Site::kDropoutMlp, 3, 2, kTokens, kWidth);
  for (int64_t n = 0; n < kTokens; ++n) {
    for (int64_t c = 0; c < kWidth; ++c) {
      const uint32_t word = contract::Draw(11, Site::kDropoutMlp, 3, 2, n * kWidth + c);
      EXPECT_EQ(mask(n, c), word >= 0x80000000u ? 1 : 0) << n << ", " << c;
    }
  }
}

TEST(DropoutMask, DiffersBySeedSiteStepAndLayer) {
  const Matrix mask = DropoutMask(1, Site::kDropoutAttention, 0, 0, 16, 8);
  EXPECT_NE(mask, DropoutMask(2, Site::kDropoutAttention, 0, 0, 16, 8));
  EXPECT_NE(mask, DropoutMask(1, Site::kDropoutMlp, 0, 0, 16, 8));
  EXPECT_NE(mask, DropoutMask(1, Site::kDropoutAttention, 1, 0, 16, 8));
  EXPECT_NE(mask, DropoutMask(1, Site::kDropoutAttention, 0, 1, 16, 8));
  EXPECT_EQ(mask, DropoutMask(1, Site::kDropoutAttention, 0, 0, 16, 8));
}

TEST(Drop, DoublesWhatIsKeptAndIsItsOwnAdjoint) {
  const Matrix mask(1, 4, {1, 0, 1, 0});
  EXPECT_EQ(Drop(Matrix(1, 4, {3, 4, -5, 6}), mask), Matrix(1, 4, {6, 0, -10, 0}));
  const Matrix x = RandomIntegers(1, 7, 3, 9);
  const Matrix y = RandomIntegers(2, 7, 3, 9);
  const Matrix random_mask = DropoutMask(1, Site::kDropoutMlp, 0, 0, 7, 3);
  EXPECT_EQ(Inner(Drop(x, random_mask), y), Inner(x, Drop(y, random_mask)));
}

TEST(Drop, WithoutAMaskChangesNothing) {
  const Matrix y(1, 2, {3, -4});
  EXPECT_EQ(Drop(y, std::nullopt), y);
}

TEST(Drop, RejectsAMaskOfAnotherShape) { EXPECT_THROW(Drop(Matrix(1, 2), Matrix(2, 1)), contract::Error); }

}  // namespace
}  // namespace plumbline::reference
