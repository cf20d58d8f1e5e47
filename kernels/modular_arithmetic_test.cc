// SPDX-License-Identifier: Apache-2.0
// Mod and Floor against integer arithmetic, at every remainder and at the ends of the domain.
#include "kernels/modular_arithmetic.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

namespace plumbline::kernels {
namespace {

int64_t MathematicalMod(int64_t x, int64_t n) { return (x % n + n) % n; }

TEST_CASE("ModIsMathematicalForNegativeZeroAndLargeValues") {
  for (const int64_t n : {1, 2, 3, 8, 24, 29, 40, 1009, 16777213}) {
    for (const int64_t center :
         {int64_t{0}, int64_t{1} << 24, -(int64_t{1} << 24), int64_t{1} << 40, -(int64_t{1} << 49)}) {
      for (int64_t x = center - 100; x <= center + 100; ++x) {
        REQUIRE(Mod(static_cast<double>(x), static_cast<double>(n)) == static_cast<double>(MathematicalMod(x, n)));
      }
    }
  }
}

TEST_CASE("FloorRoundsTowardsMinusInfinityAtEveryEighth") {
  for (int64_t eighths = -1000; eighths <= 1000; ++eighths) {
    REQUIRE(Floor(static_cast<double>(eighths) / 8) == std::floor(static_cast<double>(eighths) / 8));
  }
}

TEST_CASE("NanStaysNan") {
  REQUIRE(std::isnan(Mod(std::nan(""), 29)));
  REQUIRE(std::isnan(Floor(std::nan(""))));
}

}  // namespace
}  // namespace plumbline::kernels
