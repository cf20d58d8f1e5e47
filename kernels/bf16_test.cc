// SPDX-License-Identifier: Apache-2.0
// Rounding of float to BFloat16, against a search for the nearest value.
#include "kernels/bf16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

namespace plumbline::kernels {
namespace {

BFloat16 Bits(uint32_t bits) { return BFloat16{static_cast<uint16_t>(bits)}; }

TEST_CASE("EveryBFloat16SurvivesTheWayToFloatAndBack") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = ToFloat(Bits(bits));
    const uint32_t back = FromFloat<BFloat16>(value).bits;
    if (std::isnan(value)) {
      REQUIRE(std::isnan(ToFloat(Bits(back))));
    } else {
      REQUIRE(back == bits);
    }
  }
}

TEST_CASE("FloatsBetweenTwoNeighboursGoToTheNearerAndTiesToTheEvenOne") {
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const uint32_t low = bits << 16;
    const auto round = [](uint32_t from) { return FromFloat<BFloat16>(std::bit_cast<float>(from)).bits; };
    REQUIRE(round(low + 0x7FFF) == bits);
    REQUIRE(round(low + 0x8000) == (bits % 2 == 0 ? bits : bits + 1));
    REQUIRE(round(low + 0x8001) == bits + 1);
    REQUIRE(round(0x80000000u + low + 0x8001) == 0x8000 + bits + 1);
  }
}

TEST_CASE("IntegersUpTo256AreExactAnd257IsNot") {
  for (int value = -256; value <= 256; ++value) {
    REQUIRE(ToFloat(FromFloat<BFloat16>(static_cast<float>(value))) == static_cast<float>(value));
  }
  REQUIRE(ToFloat(FromFloat<BFloat16>(257.0f)) == 256.0f);
}

TEST_CASE("OverflowIsInfiniteAndNanIsKept") {
  REQUIRE(ToFloat(FromFloat<BFloat16>(std::numeric_limits<float>::max())) == std::numeric_limits<float>::infinity());
  REQUIRE(std::isnan(ToFloat(FromFloat<BFloat16>(std::bit_cast<float>(0x7F800001u)))));
  REQUIRE(std::isnan(ToFloat(FromFloat<BFloat16>(std::bit_cast<float>(0xFFFFFFFFu)))));
}

}  // namespace
}  // namespace plumbline::kernels
