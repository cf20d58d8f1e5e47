// SPDX-License-Identifier: Apache-2.0
// The generator against the published vectors of Random123, and the layout of counter and key against
// docs/exact-family.md, "Random draws", written out here a second time.
#include "conformance/contract/random_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace plumbline::contract {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, GivesThePublishedWordsOfRandom123) {
  constexpr uint32_t kOnes = 0xffffffff;
  const struct {
    Words counter;
    std::array<uint32_t, 2> key;
    Words words;
  } kVectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& vector : kVectors) EXPECT_EQ(Philox4x32_10(vector.counter, vector.key), vector.words);
}

TEST(Draw, PutsSeedElementStepLayerAndSiteIntoTheirWords) {
  // Digits of pi; the site, the low byte of the fourth counter word, is one that does not exist.
  constexpr uint64_t kSeed = 0x299f31d0'a4093822;
  constexpr auto kSite = static_cast<Site>(0x44);
  // Element 4e + i with e = 0x05a308d3'243f6a88: an element of 63 bits makes an e of 61.
  const Words words = Philox4x32_10({0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Draw(kSeed, kSite, 0x13198a2e, 0x037073, 4 * 0x05a308d3'243f6a88 + i), words[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(Draw(0, Site::kSampleStart, 0, 0, 3), 0x9b00dbd8u);
}

// The document's layout, written from its text.
uint32_t DrawFromTheDocument(uint64_t seed, uint32_t site, uint64_t step, uint64_t layer, uint64_t element) {
  const uint64_t e = element / 4;
  const Words counter = {static_cast<uint32_t>(e & 0xffffffff), static_cast<uint32_t>(e >> 32),
                         static_cast<uint32_t>(step), static_cast<uint32_t>(layer * 256 + site)};
  return Philox4x32_10(counter,
                       {static_cast<uint32_t>(seed & 0xffffffff), static_cast<uint32_t>(seed >> 32)})[element % 4];
}

TEST(Draw, FollowsTheDocumentBeyond32BitsOfEveryCoordinate) {
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, (uint64_t{1} << 32) + 1, ~uint64_t{0}}) {
    for (uint64_t element : {uint64_t{0}, uint64_t{5}, (uint64_t{1} << 34) - 1, uint64_t{1} << 34,
                             (uint64_t{1} << 34) + 7, (uint64_t{1} << 63) - 1}) {
      for (uint64_t step : {uint64_t{0}, uint64_t{7}, (uint64_t{1} << 32) - 1}) {
        for (uint64_t layer : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 24) - 1}) {
          EXPECT_EQ(Draw(seed, Site::kDropoutMlp, static_cast<int64_t>(step), static_cast<int64_t>(layer),
                         static_cast<int64_t>(element)),
                    DrawFromTheDocument(seed, 6, step, layer, element))
              << seed << " " << element << " " << step << " " << layer;
        }
      }
    }
  }
}

TEST(Draw, DiffersInEachCoordinate) {
  const uint32_t base = Draw(1, Site::kPositionRank, 2, 3, 4);
  EXPECT_NE(base, Draw(1 + (uint64_t{1} << 32), Site::kPositionRank, 2, 3, 4));
  EXPECT_NE(base, Draw(2, Site::kPositionRank, 2, 3, 4));
  EXPECT_NE(base, Draw(1, Site::kLossWeight, 2, 3, 4));
  EXPECT_NE(base, Draw(1, Site::kPositionRank, 3, 3, 4));
  EXPECT_NE(base, Draw(1, Site::kPositionRank, 2, 4, 4));
  EXPECT_NE(base, Draw(1, Site::kPositionRank, 2, 3, 5));
  EXPECT_NE(base, Draw(1, Site::kPositionRank, 2, 3, 4 + (int64_t{1} << 34)));
}

TEST(Site, HasTheNumbersOfTheDocument) {
  EXPECT_EQ(static_cast<uint32_t>(Site::kSampleStart), 0u);
  EXPECT_EQ(static_cast<uint32_t>(Site::kPositionRank), 1u);
  EXPECT_EQ(static_cast<uint32_t>(Site::kLossWeight), 2u);
  EXPECT_EQ(static_cast<uint32_t>(Site::kInitialWeight), 3u);
  EXPECT_EQ(static_cast<uint32_t>(Site::kInitialMaster), 4u);
  EXPECT_EQ(static_cast<uint32_t>(Site::kDropoutAttention), 5u);
  EXPECT_EQ(static_cast<uint32_t>(Site::kDropoutMlp), 6u);
}

TEST(Below, ReachesBothEndsAndNeverN) {
  constexpr int64_t kTwoTo32 = int64_t{1} << 32;
  for (int64_t n : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{29}, int64_t{1} << 31, kTwoTo32 - 1, kTwoTo32}) {
    EXPECT_EQ(Below(0, n), 0);
    EXPECT_EQ(Below(0xffffffff, n), n - 1) << n;
  }
}

TEST(Below, ChangesExactlyAtTheMultiplesOfTwoTo32OverN) {
  // n = 3: 2^32 / 3 = 1431655765.33
  EXPECT_EQ(Below(1431655765, 3), 0);
  EXPECT_EQ(Below(1431655766, 3), 1);
  EXPECT_EQ(Below(2863311530, 3), 1);
  EXPECT_EQ(Below(2863311531, 3), 2);
}

TEST(KeepBit, IsTheTopBit) {
  EXPECT_FALSE(KeepBit(0));
  EXPECT_FALSE(KeepBit(0x7fffffff));
  EXPECT_TRUE(KeepBit(0x80000000));
  EXPECT_TRUE(KeepBit(0xffffffff));
}

}  // namespace
}  // namespace plumbline::contract
