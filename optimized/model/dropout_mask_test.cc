// SPDX-License-Identifier: Apache-2.0
// Masks equal the contract's draws, wherever a micro-batch begins inside a block of four.
#include "optimized/model/dropout_mask.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

TEST(DropoutMask, EqualsTheDrawOfEveryElementAtEveryAlignment) {
  for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{5}, (int64_t{1} << 34) - 2}) {
    for (const int64_t size : {0, 1, 2, 3, 4, 5, 7, 97}) {
      for (const auto site : {contract::Site::kDropoutAttention, contract::Site::kDropoutMlp}) {
        std::vector<uint8_t> keep(size + 1, 0xAA);
        const uint64_t seed = 0x123456789ABCDEF0;
        for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
          FillDropoutMask(seed, site, 3, 2, first, DropThreshold(rate), std::span(keep).first(size));
          for (int64_t i = 0; i < size; ++i) {
            const double word = contract::Draw(seed, site, 3, 2, first + i);
            ASSERT_EQ(keep[i], word >= std::floor(rate * 4294967296.0) ? 1 : 0);
            if (rate == 0.5) {
              ASSERT_EQ(keep[i] == 1, contract::KeepBit(static_cast<uint32_t>(word)));
            }
          }
          ASSERT_EQ(keep[size], 0xAA);
        }
      }
    }
  }
}

TEST(DropoutMask, KeepsTheShareThatTheRateSays) {
  std::vector<uint8_t> keep(100000);
  for (const double rate : {0.0, 0.1, 0.75}) {
    FillDropoutMask(5, contract::Site::kDropoutMlp, 1, 0, 0, DropThreshold(rate), keep);
    const double share = std::accumulate(keep.begin(), keep.end(), 0.0) / 1e5;
    EXPECT_NEAR(share, 1 - rate, 0.007);  // more than four standard deviations
  }
}

TEST(DropoutMask, ThresholdsAreFloorsAndRatesOutsideAreRefused) {
  EXPECT_EQ(DropThreshold(0), 0u);
  EXPECT_EQ(DropThreshold(0.5), uint64_t{1} << 31);
  EXPECT_EQ(DropThreshold(0.1), 429496729u);
  EXPECT_THROW(DropThreshold(1), contract::Error);
  EXPECT_THROW(DropThreshold(-0.1), contract::Error);
  EXPECT_THROW(DropThreshold(NAN), contract::Error);
}

TEST(DropoutMask, DependsOnEveryCoordinate) {
  const auto mask = [](uint64_t seed, contract::Site site, int64_t step, int64_t layer) {
    std::vector<uint8_t> keep(64);
    FillDropoutMask(seed, site, step, layer, 0, DropThreshold(0.5), keep);
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
