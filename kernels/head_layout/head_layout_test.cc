// SPDX-License-Identifier: Apache-2.0
// The permutation between the two layouts, element by element from the index formula.
#include "kernels/head_layout/head_layout.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

TEMPLATE_TEST_CASE("SplitFollowsTheIndexFormulaAndJoinUndoesIt", "", float, BFloat16, Float16) {
  for (const HeadSizes& sizes :
       {HeadSizes{0, 3, 2, 4}, HeadSizes{1, 1, 1, 1}, HeadSizes{2, 3, 5, 7}, HeadSizes{3, 8, 3, 4},
        HeadSizes{1, 7, 2, 1}, HeadSizes{2, 3, 5, 7, 3}, HeadSizes{3, 2, 1, 5, 2}}) {
    const int64_t size = sizes.parts * sizes.samples * sizes.positions * sizes.heads * sizes.head_width;
    std::vector<double> joined(size), expected(size);
    for (int64_t i = 0; i < size; ++i) joined[i] = static_cast<double>(i % 251);
    for (int64_t s = 0; s < sizes.samples; ++s) {
      for (int64_t t = 0; t < sizes.positions; ++t) {
        for (int64_t h = 0; h < sizes.heads; ++h) {
          for (int64_t c = 0; c < sizes.head_width; ++c) {
            for (int64_t p = 0; p < sizes.parts; ++p) {
              const int64_t matrix = (p * sizes.samples + s) * sizes.heads + h;
              const int64_t row = (s * sizes.positions + t) * sizes.parts + p;
              expected[(matrix * sizes.positions + t) * sizes.head_width + c] =
                  joined[(row * sizes.heads + h) * sizes.head_width + c];
            }
          }
        }
      }
    }
    Guarded<TestType> heads(size, 3);
    SplitHeads<TestType>(sizes, Guarded<TestType>(joined, 1).view(), heads.span());
    REQUIRE(heads.Values() == expected);
    REQUIRE(heads.GuardsAreIntact());
    Guarded<TestType> back(size, 5);
    JoinHeads<TestType>(sizes, heads.view(), back.span());
    REQUIRE(back.Values() == joined);
    REQUIRE(back.GuardsAreIntact());
  }
}

TEST_CASE("HeadLayoutRefusesSizesThatDoNotMatch") {
  std::vector<float> six(6), five(5);
  REQUIRE_THROWS_WITH((SplitHeads<float>({1, 1, 2, 3}, six, five)), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH((JoinHeads<float>({1, 1, 2, 3}, five, six)), Catch::Contains("size of its shape"));
  REQUIRE_THROWS_WITH((SplitHeads<float>({-1, -1, 2, 3}, six, six)), Catch::Contains("negative"));
}

}  // namespace
}  // namespace plumbline::kernels
