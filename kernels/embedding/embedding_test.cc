// SPDX-License-Identifier: Apache-2.0
// Gather and both scatters against sums over all pairs of rows in double.
#include "kernels/embedding/embedding.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "kernels/testing/sizes.h"

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

TEMPLATE_TEST_CASE("EmbeddingForwardAddsTheTokensRowAndThePositionsRow", "", float, BFloat16) {
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

TEMPLATE_TEST_CASE("BackwardAddsEachTokensRowToWhatIsThere", "", float, BFloat16) {
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

TEST_CASE("EmbeddingRefusesTokensOutsideTheVocabularyAndWrongSizes") {
  const EmbeddingSizes sizes{2, 2, 3, 4};
  std::vector<float> embed(12), pos(6), x(6), short_x(5);
  for (const int32_t bad : {-1, 4}) {
    const std::vector<int32_t> token = {0, bad};
    REQUIRE_THROWS_WITH(EmbeddingForward<float>(sizes, token, embed, pos, x), Catch::Contains("vocabulary"));
    REQUIRE_THROWS_WITH(EmbeddingBackward<float>(sizes, token, x, embed), Catch::Contains("vocabulary"));
  }
  const std::vector<int32_t> token = {0, 3};
  REQUIRE_THROWS_WITH(EmbeddingForward<float>(sizes, token, embed, pos, short_x), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH(PositionBackward<float>(sizes, x, embed), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH(PositionBackward<float>({3, 2, 2, 4}, x, pos), Catch::Contains("multiple of positions"));
}

}  // namespace
}  // namespace plumbline::kernels
