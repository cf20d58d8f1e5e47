// SPDX-License-Identifier: Apache-2.0
// Masks equal the contract's draws, wherever a micro-batch begins inside a block of four.
#include "optimized/model/dropout_mask.h"

#include <gtest/gtest.h>

#include <vector>

namespace plumbline::optimized {
namespace {

TEST(DropoutMask, EqualsTheDrawOfEveryElementAtEveryAlignment) {
  for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{5}, (int64_t{1} << 34) - 2}) {
    for (const int64_t size : {0, 1, 2, 3, 4, 5, 7, 97}) {
      for (const auto site : {contract::Site::kDropoutAttention, contract::Site::kDropoutMlp}) {
        std::vector<uint8_t> keep(size + 1, 0xAA);
        const uint64_t seed = 0x123456789ABCDEF0;
        FillDropoutMask(seed, site, 3, 2, first, std::span(keep).first(size));
        for (int64_t i = 0; i < size; ++i) {
          ASSERT_EQ(keep[i], contract::KeepBit(contract::Draw(seed, site, 3, 2, first + i)) ? 1 : 0);
        }
        ASSERT_EQ(keep[size], 0xAA);
      }
    }
  }
}

TEST(DropoutMask, DependsOnEveryCoordinate) {
  const auto mask = [](uint64_t seed, contract::Site site, int64_t step, int64_t layer) {
    std::vector<uint8_t> keep(64);
    FillDropoutMask(seed, site, step, layer, 0, keep);
    return keep;
  };
  const auto base = mask(1, contract::Site::kDropoutMlp, 2, 3);
  EXPECT_NE(base, mask(uint64_t{1} << 32 | 1, contract::Site::kDropoutMlp, 2, 3));
  EXPECT_NE(base, mask(2, contract::Site::kDropoutMlp, 2, 3));
  EXPECT_NE(base, mask(1, contract::Site::kDropoutAttention, 2, 3));
  EXPECT_NE(base, mask(1, contract::Site::kDropoutMlp, 3, 3));
  EXPECT_NE(base, mask(1, contract::Site::kDropoutMlp, 2, 4));
}

}  // namespace
}  // namespace plumbline::optimized
