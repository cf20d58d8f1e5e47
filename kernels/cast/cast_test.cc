// SPDX-License-Identifier: Apache-2.0
// Casts of values over the whole exponent range, at every size and offset, against the scalar conversion (itself tested
// in bf16_test against a search).
#include "kernels/cast/cast.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

// The nearer of the two neighbours in BFloat16, found in double.
double Nearest(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, exponent - 8);
  return std::nearbyint(value / unit) * unit;  // the default rounding mode: ties to even
}

TEST_CASE("CastToBFloat16IsTheNearestValueAtEverySizeAndOffset") {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Integers integers;
    std::vector<double> x(size), expected(size);
    for (int64_t i = 0; i < size; ++i) {
      x[i] = static_cast<float>(std::ldexp(static_cast<double>(integers.In(-9999999, 9999999)), integers.In(-60, 60)));
      expected[i] = x[i] == 0 ? 0 : Nearest(x[i]);
    }
    Guarded<BFloat16> y(size, (offset + 1) % testing::kNumOffsets);
    Cast<float, BFloat16>(Guarded<float>(x, offset).view(), y.span());
    REQUIRE(y.Values() == expected);
    REQUIRE(y.GuardsAreIntact());
    Guarded<float> wide(size, offset);
    Cast<BFloat16, float>(y.view(), wide.span());
    REQUIRE(wide.Values() == expected);
    REQUIRE(wide.GuardsAreIntact());
  });
}

TEST_CASE("CastRefusesDifferentSizes") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((Cast<float, float>(three, four)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
