// SPDX-License-Identifier: Apache-2.0
// The masks are the draws of the document, element by element, and differ by every coordinate.
#include "conformance/engines/torch_eager/dropout_masks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plumbline::conformance::torch_eager {
namespace {

using contract::Site;

TEST(TwiceKeepMask, IsTwiceTheTopBitOfEachElementsDraw) {
  for (const int64_t num_elems : {0, 1, 5, 257}) {
    const std::vector<float> mask = TwiceKeepMask(1ull << 40, Site::kDropoutMlp, 3, 2, num_elems);
    ASSERT_EQ(mask.size(), static_cast<size_t>(num_elems));
    for (int64_t i = 0; i < num_elems; ++i) {
      EXPECT_EQ(mask[i], contract::Draw(1ull << 40, Site::kDropoutMlp, 3, 2, i) >= 0x80000000u ? 2.0f : 0.0f) << i;
    }
  }
}

TEST(TwiceKeepMask, KeepsAboutHalf) {
  const std::vector<float> mask = TwiceKeepMask(1, Site::kDropoutAttention, 0, 0, 10'000);
  const float kept = std::accumulate(mask.begin(), mask.end(), 0.0f) / 2;
  EXPECT_GT(kept, 4'800);  // 4 standard deviations
  EXPECT_LT(kept, 5'200);
}

TEST(TwiceKeepMask, DependsOnSeedSiteStepAndLayer) {
  const std::vector<float> mask = TwiceKeepMask(1, Site::kDropoutAttention, 0, 0, 64);
  EXPECT_NE(mask, TwiceKeepMask(2, Site::kDropoutAttention, 0, 0, 64));
  EXPECT_NE(mask, TwiceKeepMask(1ull + (1ull << 32), Site::kDropoutAttention, 0, 0, 64));
  EXPECT_NE(mask, TwiceKeepMask(1, Site::kDropoutMlp, 0, 0, 64));
  EXPECT_NE(mask, TwiceKeepMask(1, Site::kDropoutAttention, 1, 0, 64));
  EXPECT_NE(mask, TwiceKeepMask(1, Site::kDropoutAttention, 0, 1, 64));
}

TEST(KeepMask, KeepsWordsFromTheThresholdOnAndCountsFromTheFirstElement) {
  const uint32_t word = contract::Draw(9, contract::Site::kDropoutScores, 4, 2, 17);
  EXPECT_EQ(KeepMask(9, contract::Site::kDropoutScores, 4, 2, word, 17, 1), std::vector<float>{1});
  EXPECT_EQ(KeepMask(9, contract::Site::kDropoutScores, 4, 2, word + 1, 17, 1), std::vector<float>{0});
  const std::vector<float> whole = KeepMask(9, contract::Site::kDropoutMlpOut, 4, 1, 1u << 31, 0, 100);
  const std::vector<float> part = KeepMask(9, contract::Site::kDropoutMlpOut, 4, 1, 1u << 31, 40, 60);
  EXPECT_EQ(part, std::vector<float>(whole.begin() + 40, whole.end()));
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
