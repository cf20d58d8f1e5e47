// SPDX-License-Identifier: Apache-2.0
// The application of a dropout mask, over sizes, offsets and types.
#include "kernels/dropout/dropout.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

TEMPLATE_TEST_CASE("KeptElementsAreDoubledAndOthersAreZeroAtEverySizeAndOffset", "", float, BFloat16, Float16) {
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
    DropoutApply<TestType>(y.view(), keep, 2, y.span());
    REQUIRE(y.Values() == expected);
    REQUIRE(y.GuardsAreIntact());
  });
}

TEMPLATE_TEST_CASE("KeptElementsAreScaledOnceAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  const float scale = 1 / (1 - 0.3f);
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Reals reals(static_cast<uint64_t>(size));
    const std::vector<double> x = reals.Vector<TestType>(size, -5, 5);
    std::vector<uint8_t> keep(size);
    std::vector<double> expected;
    for (int64_t i = 0; i < size; ++i) {
      keep[i] = reals.In<float>(0, 1) < 0.7 ? 1 : 0;
      expected.push_back(keep[i] ? ToFloat(FromFloat<TestType>(static_cast<float>(double{scale} * x[i]))) : 0);
    }
    Guarded<TestType> y(size, offset);
    DropoutApply<TestType>(Guarded<TestType>(x, offset).view(), keep, scale, y.span());
    REQUIRE(y.Values() == expected);
    REQUIRE(y.GuardsAreIntact());
  });
}

TEST_CASE("ADroppedNanStaysNan") {
  std::vector<float> x = {NAN, NAN, INFINITY};
  const std::vector<uint8_t> keep = {0, 1, 1};
  DropoutApply<float>(x, keep, 2, x);
  REQUIRE((std::isnan(x[0]) && std::isnan(x[1]) && std::isinf(x[2])));
}

TEST_CASE("InFp16WhatIsKeptOverflowsToInfinityAndMayBeSubnormal") {
  const std::vector<uint8_t> keep = {1, 1, 1, 0};
  Guarded<Float16> y({40000, -32768, 0x1p-24, 40000}, 0);
  DropoutApply<Float16>(y.view(), keep, 2, y.span());
  REQUIRE(y.Values() == std::vector<double>{INFINITY, -INFINITY, 0x1p-23, 0});
}

TEST_CASE("DropoutRefusesAMaskOfAnotherSize") {
  std::vector<float> three(3);
  const std::vector<uint8_t> four(4);
  REQUIRE_THROWS_WITH((DropoutApply<float>(three, four, 2, three)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
