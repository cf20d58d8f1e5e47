// SPDX-License-Identifier: Apache-2.0
// Both gathers and both scatters against sums over all pairs of rows in double.
#include "kernels/embedding/embedding.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

constexpr EmbeddingSizes kCases[] = {{0, 1, 1, 1},    {1, 1, 1, 1},    {7, 7, 5, 3},
                                     {24, 8, 12, 19}, {33, 11, 13, 2}, {5, 1, 17, 7}};

std::vector<int32_t> Tokens(const EmbeddingSizes& sizes) {
  testing::Integers integers(2);
  std::vector<int32_t> tokens(sizes.tokens);
  for (int32_t& token : tokens) token = static_cast<int32_t>(integers.In(0, sizes.vocab - 1));
  return tokens;
}

TEMPLATE_TEST_CASE("EmbeddingForwardAddsTheTokensRowAndThePositionsRow", "", float, BFloat16, Float16) {
  for (const EmbeddingSizes& sizes : kCases) {
    for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
      testing::Integers integers;
      const std::vector<double> embed = integers.Vector(sizes.vocab * sizes.width, -100, 100);
      const std::vector<double> pos = integers.Vector(sizes.positions * sizes.width, -100, 100);
      const std::vector<int32_t> token = Tokens(sizes);
      Guarded<TestType> x(sizes.tokens * sizes.width, offset);
      EmbeddingForward<TestType>(sizes, token, Guarded<TestType>(embed, offset).view(),
                                 Guarded<TestType>(pos, 3).view(), x.span());
      std::vector<double> expected;
      for (int64_t i = 0; i < sizes.tokens; ++i) {
        for (int64_t c = 0; c < sizes.width; ++c) {
          expected.push_back(embed[token[i] * sizes.width + c] + pos[i % sizes.positions * sizes.width + c]);
        }
      }
      REQUIRE(x.Values() == expected);
      REQUIRE(x.GuardsAreIntact());
    }
  }
}

TEMPLATE_TEST_CASE("EmbeddingLookupCopiesTheTokensRow", "", float, BFloat16, Float16) {
  for (const EmbeddingSizes& sizes : kCases) {
    for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
      const std::vector<double> embed = testing::Reals().Vector<TestType>(sizes.vocab * sizes.width, -1, 1);
      const std::vector<int32_t> token = Tokens(sizes);
      Guarded<TestType> x(sizes.tokens * sizes.width, offset);
      EmbeddingLookup<TestType>(sizes, token, Guarded<TestType>(embed, offset).view(), x.span());
      std::vector<double> expected;
      for (int64_t i = 0; i < sizes.tokens * sizes.width; ++i) {
        expected.push_back(embed[token[i / sizes.width] * sizes.width + i % sizes.width]);
      }
      REQUIRE(x.Values() == expected);
      REQUIRE(x.GuardsAreIntact());
    }
  }
}

TEMPLATE_TEST_CASE("BackwardAddsEachTokensRowToWhatIsThere", "", float, BFloat16, Float16) {
  for (const EmbeddingSizes& sizes : kCases) {
    testing::Integers integers;
    const std::vector<double> dx = integers.Vector(sizes.tokens * sizes.width, -9, 9);
    const std::vector<int32_t> token = Tokens(sizes);
    std::vector<double> expected_embed = integers.Vector(sizes.vocab * sizes.width, -1000, 1000);
    std::vector<double> expected_pos = integers.Vector(sizes.positions * sizes.width, -1000, 1000);
    Guarded<float> dembed(expected_embed, 5);
    Guarded<float> dpos(expected_pos, 2);
    for (int64_t i = 0; i < sizes.tokens; ++i) {
      for (int64_t c = 0; c < sizes.width; ++c) {
        expected_embed[token[i] * sizes.width + c] += dx[i * sizes.width + c];
        expected_pos[i % sizes.positions * sizes.width + c] += dx[i * sizes.width + c];
      }
    }
    const Guarded<TestType> gradient(dx, 1);
    EmbeddingBackward<TestType>(sizes, token, gradient.view(), dembed.span());
    PositionBackward<TestType>(sizes, gradient.view(), dpos.span());
    REQUIRE(dembed.Values() == expected_embed);
    REQUIRE(dpos.Values() == expected_pos);
    REQUIRE((dembed.GuardsAreIntact() && dpos.GuardsAreIntact()));
  }
}

TEMPLATE_TEST_CASE("EmbeddingOfRealsKeepsItsDeclaredErrors", "", float, BFloat16, Float16) {
  for (const EmbeddingSizes& sizes : kCases) {
    testing::Reals reals;
    const std::vector<double> embed = reals.Vector<TestType>(sizes.vocab * sizes.width, -1, 1);
    const std::vector<double> pos = reals.Vector<TestType>(sizes.positions * sizes.width, -1, 1);
    const std::vector<double> dx = reals.Vector<TestType>(sizes.tokens * sizes.width, -1, 1);
    const std::vector<int32_t> token = Tokens(sizes);
    Guarded<TestType> x(sizes.tokens * sizes.width, 1), gradient(dx, 2);
    Guarded<float> dembed(std::vector<double>(embed.size(), 0.5), 3), dpos(std::vector<double>(pos.size(), 0.5), 4);
    EmbeddingForward<TestType>(sizes, token, Guarded<TestType>(embed, 5).view(), Guarded<TestType>(pos, 6).view(),
                               x.span());
    EmbeddingBackward<TestType>(sizes, token, gradient.view(), dembed.span());
    PositionBackward<TestType>(sizes, gradient.view(), dpos.span());
    std::vector<double> embed_sum(embed.size(), 0.5), pos_sum(pos.size(), 0.5), embed_size(embed_sum),
        pos_size(pos_sum);
    for (int64_t i = 0; i < sizes.tokens * sizes.width; ++i) {
      const int64_t row = i / sizes.width, c = i % sizes.width;
      const int64_t at_embed = token[row] * sizes.width + c, at_pos = row % sizes.positions * sizes.width + c;
      const double expected = embed[at_embed] + pos[at_pos];
      REQUIRE(testing::Within(
          x.Values()[i], expected,
          kEmbeddingMaxUnits * 0x1p-24 * std::abs(expected) + 1.01 * testing::Rounding<TestType>(expected)));
      embed_sum[at_embed] += dx[i];
      embed_size[at_embed] += std::abs(dx[i]);
      pos_sum[at_pos] += dx[i];
      pos_size[at_pos] += std::abs(dx[i]);
    }
    const double units = EmbeddingGradientMaxUnits(sizes.tokens) * 0x1p-24;
    for (size_t i = 0; i < embed.size(); ++i) {
      REQUIRE(testing::Within(dembed.Values()[i], embed_sum[i], units * embed_size[i]));
    }
    for (size_t i = 0; i < pos.size(); ++i) {
      REQUIRE(testing::Within(dpos.Values()[i], pos_sum[i], units * pos_size[i]));
    }
  }
}

TEST_CASE("InFp16TheSumOfTwoRowsOverflowsToInfinityAndMayBeSubnormal") {
  const std::vector<int32_t> token = {1};
  Guarded<Float16> x(3, 0);
  EmbeddingForward<Float16>({1, 1, 3, 2}, token, Guarded<Float16>({0, 0, 0, 40000, -65504, 0x1p-24}, 0).view(),
                            Guarded<Float16>({40000, -16, 0x1p-23}, 0).view(), x.span());
  REQUIRE(x.Values() == std::vector<double>{INFINITY, -INFINITY, 3 * 0x1p-24});
  std::vector<float> dpos(3);
  PositionBackward<Float16>({2, 1, 3, 2}, Guarded<Float16>({65504, 0x1p-24, INFINITY, 65504, 0x1p-24, 1}, 0).view(),
                            dpos);
  REQUIRE(dpos == std::vector<float>{131008, 0x1p-23f, INFINITY});
}

TEST_CASE("EmbeddingRefusesTokensOutsideTheVocabularyAndWrongSizes") {
  const EmbeddingSizes sizes{2, 2, 3, 4};
  std::vector<float> embed(12), pos(6), x(6), short_x(5);
  for (const int32_t bad : {-1, 4}) {
    const std::vector<int32_t> token = {0, bad};
    REQUIRE_THROWS_WITH(EmbeddingForward<float>(sizes, token, embed, pos, x), Catch::Contains("vocabulary"));
    REQUIRE_THROWS_WITH(EmbeddingBackward<float>(sizes, token, x, embed), Catch::Contains("vocabulary"));
    REQUIRE_THROWS_WITH(EmbeddingLookup<float>(sizes, token, embed, x), Catch::Contains("vocabulary"));
  }
  const std::vector<int32_t> token = {0, 3};
  REQUIRE_THROWS_WITH(EmbeddingForward<float>(sizes, token, embed, pos, short_x), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH(EmbeddingLookup<float>(sizes, token, embed, short_x), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH(PositionBackward<float>(sizes, x, embed), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH(PositionBackward<float>({3, 2, 2, 4}, x, pos), Catch::Contains("multiple of positions"));
}

}  // namespace
}  // namespace plumbline::kernels
