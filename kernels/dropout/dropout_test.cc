// SPDX-License-Identifier: Apache-2.0
// The application of a dropout mask, over sizes, offsets and types.
#include "kernels/dropout/dropout.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

TEMPLATE_TEST_CASE("KeptElementsAreDoubledAndOthersAreZeroAtEverySizeAndOffset", "", float, BFloat16) {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Integers integers;
    const std::vector<double> x = integers.Vector(size, -128, 128);
    std::vector<uint8_t> keep(size);
    std::vector<double> expected;
    for (int64_t i = 0; i < size; ++i) {
      keep[i] = static_cast<uint8_t>(integers.In(0, 1));
      expected.push_back(keep[i] ? 2 * x[i] : 0);
    }
    Guarded<TestType> y(x, offset);
    DropoutApply<TestType>(y.view(), keep, y.span());
    REQUIRE(y.Values() == expected);
    REQUIRE(y.GuardsAreIntact());
  });
}

TEST_CASE("DropoutRefusesAMaskOfAnotherSize") {
  std::vector<float> three(3);
  const std::vector<uint8_t> four(4);
  REQUIRE_THROWS_WITH((DropoutApply<float>(three, four, three)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
