// SPDX-License-Identifier: Apache-2.0
// Sums at every size and offset, and the one rounding of BFloat16.
#include "kernels/accumulate/accumulate.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

TEMPLATE_TEST_CASE("AccumulateAddsAtEverySizeAndOffset", "", float, BFloat16) {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Integers integers;
    const std::vector<double> x = integers.Vector(size, -128, 128);
    std::vector<double> sum = integers.Vector(size, -128, 128);
    Guarded<TestType> memory(sum, (offset + 6) % testing::kNumOffsets);
    Accumulate<TestType>(Guarded<TestType>(x, offset).view(), memory.span());
    for (int64_t i = 0; i < size; ++i) sum[i] += x[i];
    REQUIRE(memory.Values() == sum);
    REQUIRE(memory.GuardsAreIntact());
  });
}

TEST_CASE("BFloat16SumsAreRoundedOnceToEven") {
  const std::vector<BFloat16> x = {FromFloat<BFloat16>(1), FromFloat<BFloat16>(3)};
  std::vector<BFloat16> sum = {FromFloat<BFloat16>(256), FromFloat<BFloat16>(256)};
  Accumulate<BFloat16>(x, sum);
  REQUIRE(ToFloat(sum[0]) == 256);
  REQUIRE(ToFloat(sum[1]) == 260);
}

TEST_CASE("DoubleSumsKeepWhatFloatWouldLose") {
  const std::vector<double> x = {1};
  std::vector<double> sum = {16777216};
  Accumulate<double>(x, sum);
  REQUIRE(sum[0] == 16777217);
}

TEST_CASE("AccumulateRefusesDifferentSizes") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((Accumulate<float>(three, four)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
