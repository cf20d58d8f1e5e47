// SPDX-License-Identifier: Apache-2.0
// Conversions of Float16, every pattern against its value by definition, and every float next to a rounding boundary.
#include "kernels/fp16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

namespace plumbline::kernels {
namespace {

constexpr uint32_t kInfinity = 0x7C00;

Float16 Bits(uint32_t bits) { return Float16{static_cast<uint16_t>(bits)}; }
uint32_t Round(float value) { return FromFloat<Float16>(value).bits; }

// By the definition of binary16; finite patterns.
double ValueOf(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const int fraction = static_cast<int>(bits & 1023);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

TEST_CASE("EveryFloat16HasTheValueOfItsPatternAndSurvivesTheWayBack") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = ToFloat(Bits(bits));
    if ((bits & 0x7FFF) > kInfinity) {
      REQUIRE(std::isnan(value));
      REQUIRE(std::isnan(ToFloat(Bits(Round(value)))));
      continue;
    }
    if ((bits & 0x7FFF) == kInfinity) {
      REQUIRE(std::isinf(value));
    } else {
      REQUIRE(static_cast<double>(value) == ValueOf(bits));
    }
    REQUIRE(std::signbit(value) == (bits >> 15 == 1));
    REQUIRE(Round(value) == bits);
  }
}

TEST_CASE("FloatsBetweenTwoNeighboursGoToTheNearerAndTiesToTheEvenOne") {
  for (uint32_t bits = 0; bits < kInfinity; ++bits) {
    // Beyond the largest number the tie is with what would be the next one.
    const double above = bits + 1 == kInfinity ? 65536.0 : ValueOf(bits + 1);
    const auto tie = static_cast<float>((ValueOf(bits) + above) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    REQUIRE(Round(tie) == even);
    REQUIRE(Round(-tie) == (0x8000 | even));
    REQUIRE(Round(std::nextafter(tie, 0.0f)) == bits);
    REQUIRE(Round(std::nextafter(tie, 1e9f)) == bits + 1);
    REQUIRE(Round(-std::nextafter(tie, 1e9f)) == (0x8000 | (bits + 1)));
  }
}

TEST_CASE("IntegersUpTo2048AreExactAnd2049IsNot") {
  for (int value = -2048; value <= 2048; ++value) {
    REQUIRE(ToFloat(FromFloat<Float16>(static_cast<float>(value))) == static_cast<float>(value));
  }
  REQUIRE(ToFloat(FromFloat<Float16>(2049.0f)) == 2048.0f);
}

TEST_CASE("OverflowIsInfiniteAndNanIsKept") {
  REQUIRE(Round(65519.996f) == kInfinity - 1);
  REQUIRE(Round(65520.0f) == kInfinity);
  REQUIRE(Round(std::numeric_limits<float>::max()) == kInfinity);
  REQUIRE(Round(-std::numeric_limits<float>::infinity()) == (0x8000 | kInfinity));
  REQUIRE(Round(std::numeric_limits<float>::denorm_min()) == 0);
  for (const uint32_t nan : {0x7F800001u, 0xFFFFFFFFu, 0x7FC00000u}) {
    REQUIRE(std::isnan(ToFloat(FromFloat<Float16>(std::bit_cast<float>(nan)))));
  }
}

}  // namespace
}  // namespace plumbline::kernels
