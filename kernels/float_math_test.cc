// SPDX-License-Identifier: Apache-2.0
// The exponential against the C library in double over its whole range, and sums against their declared order.
#include "kernels/float_math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace plumbline::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("ExpKeepsItsDeclaredErrorOverTheWholeRange") {
  double worst = 0;
  for (int64_t i = -880000; i <= 888000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    const double exact = std::exp(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(Exp(x)) - exact);
    if (exact >= 3.4028235e38) continue;
    REQUIRE(error <= kExpMaxUnits * 0x1p-24 * exact + 0x1p-125);
    if (x > -87) worst = std::max(worst, error / exact / 0x1p-24);
  }
  INFO("worst error in units: " << worst);
  REQUIRE(worst > kExpMaxUnits / 4);  // the declared bound says something
}

TEST_CASE("ExpOfSpecialValues") {
  REQUIRE(Exp(0) == 1);
  REQUIRE(Exp(-0.0f) == 1);
  REQUIRE(Exp(std::numeric_limits<float>::denorm_min()) == 1);
  REQUIRE(Exp(kInfinity) == kInfinity);
  REQUIRE(Exp(100) == kInfinity);
  REQUIRE(Exp(88.73f) == kInfinity);
  REQUIRE(Exp(-kInfinity) == 0);
  REQUIRE(Exp(-1e30f) == 0);
  REQUIRE(std::isnan(Exp(NAN)));
}

TEST_CASE("LaneSumAddsEveryTermOnceWithinItsErrorAtEverySize") {
  for (int64_t n = 0; n <= 100; ++n) {
    REQUIRE(LaneSum(n, [](int64_t i) { return static_cast<float>(i + 1); }) == static_cast<float>(n * (n + 1) / 2));
    double exact = 0, magnitude = 0;
    const auto term = [](int64_t i) { return static_cast<float>(std::sin(static_cast<double>(i * i + 1))); };
    for (int64_t i = 0; i < n; ++i) exact += term(i), magnitude += std::abs(term(i));
    REQUIRE(std::abs(LaneSum(n, term) - exact) <= LaneSumMaxUnits(n) * 0x1p-24 * magnitude);
  }
}

TEST_CASE("LaneMaxFindsTheLargestWhereverItIs") {
  for (int64_t n = 1; n <= 70; ++n) {
    for (int64_t place = 0; place < n; ++place) {
      REQUIRE(LaneMax(n, [&](int64_t i) { return i == place ? -1.0f : -2.0f - static_cast<float>(i); }) == -1);
    }
  }
  REQUIRE(LaneMax(3, [](int64_t) { return -kInfinity; }) == -kInfinity);
}

}  // namespace
}  // namespace plumbline::kernels
