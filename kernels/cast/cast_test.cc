// SPDX-License-Identifier: Apache-2.0
// Casts of values over the whole exponent range, at every size and offset, against the scalar conversion (itself tested
// in bf16_test against a search).
#include "kernels/cast/cast.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

// A storage type by definition: how many bits, the smallest step, and exponents for inputs that do not overflow.
template <typename T>
struct Format;
template <>
struct Format<BFloat16> {
  static constexpr int kBits = 8, kSmallestStep = -133, kLeast = -60, kMost = 60;
};
template <>
struct Format<Float16> {
  static constexpr int kBits = 11, kSmallestStep = -24, kLeast = -50, kMost = -8;
};

// The nearer of the two neighbours in T, found in double.
template <typename T>
double Nearest(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - Format<T>::kBits, Format<T>::kSmallestStep));
  return std::nearbyint(value / unit) * unit;  // the default rounding mode: ties to even
}

TEMPLATE_TEST_CASE("CastIsTheNearestValueAtEverySizeAndOffset", "", BFloat16, Float16) {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Integers integers;
    std::vector<double> x(size), expected(size);
    for (int64_t i = 0; i < size; ++i) {
      const auto scale = static_cast<int>(integers.In(Format<TestType>::kLeast, Format<TestType>::kMost));
      x[i] = static_cast<float>(std::ldexp(static_cast<double>(integers.In(-9999999, 9999999)), scale));
      expected[i] = x[i] == 0 ? 0 : Nearest<TestType>(x[i]);
    }
    Guarded<TestType> y(size, (offset + 1) % testing::kNumOffsets);
    Cast<float, TestType>(Guarded<float>(x, offset).view(), y.span());
    REQUIRE(y.Values() == expected);
    REQUIRE(y.GuardsAreIntact());
    Guarded<float> wide(size, offset);
    Cast<TestType, float>(y.view(), wide.span());
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
