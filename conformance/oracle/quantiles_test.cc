// SPDX-License-Identifier: Apache-2.0
// Published values and closed forms; nothing here is computed the way quantiles.cc computes it.
#include "conformance/oracle/quantiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace plumbline::conformance {
namespace {

TEST(NormalUpperQuantile, HasThePublishedValues) {
  EXPECT_NEAR(NormalUpperQuantile(0.5), 0, 1e-12);
  EXPECT_NEAR(NormalUpperQuantile(0.025), 1.959963984540054, 1e-9);
  EXPECT_NEAR(NormalUpperQuantile(1e-9), 5.997807015007686, 1e-8);
}

TEST(FisherUpperQuantile, HasThePublishedValues) {
  // Tables of Snedecor's F, upper 5 % and 1 %.
  EXPECT_NEAR(FisherUpperQuantile(4, 10, 0.05), 3.478, 5e-4);
  EXPECT_NEAR(FisherUpperQuantile(1, 10, 0.01), 10.044, 5e-4);
  EXPECT_NEAR(FisherUpperQuantile(10, 20, 0.05), 2.348, 5e-4);
  EXPECT_NEAR(FisherUpperQuantile(60, 120, 0.01), 1.66, 5e-3);
}

TEST(FisherUpperQuantile, EqualsTheClosedFormsInTheTail) {
  for (double tail : {0.3, 1e-3, 1e-6, 1e-9}) {
    // Two and two: P(F > f) = 1 / (1 + f). Two and d: (1 + 2 f / d)^(-d / 2).
    EXPECT_NEAR(FisherUpperQuantile(2, 2, tail) / (1 / tail - 1), 1, 1e-7) << tail;
    const double expected = 5.0 / 2 * (std::pow(tail, -2.0 / 5) - 1);
    EXPECT_NEAR(FisherUpperQuantile(2, 5, tail) / expected, 1, 1e-7) << tail;
    // One and one: the square of a Cauchy variable.
    const double cauchy = 1 / std::tan(std::numbers::pi * tail / 2);
    EXPECT_NEAR(FisherUpperQuantile(1, 1, tail) / (cauchy * cauchy), 1, 1e-6) << tail;
  }
}

TEST(FisherUpperQuantile, FallsToOneWithManyDegreesOfFreedom) {
  double before = FisherUpperQuantile(3, 3, 1e-9);
  for (double degrees : {7.0, 48.0, 311.0, 40'000.0, 3e6}) {
    const double now = FisherUpperQuantile(degrees, degrees, 1e-9);
    EXPECT_LT(now, before) << degrees;
    EXPECT_GT(now, 1) << degrees;
    before = now;
  }
  EXPECT_LT(before, 1.02);
}

TEST(LogSpreadOfDegrees, HasTheKnownValues) {
  // trigamma(1/2) = pi^2/2, trigamma(1) = pi^2/6, trigamma(3/2) = pi^2/2 - 4.
  const double square = std::numbers::pi * std::numbers::pi;
  EXPECT_NEAR(LogSpreadOfDegrees(1), square / 8, 1e-10);
  EXPECT_NEAR(LogSpreadOfDegrees(2), square / 24, 1e-10);
  EXPECT_NEAR(LogSpreadOfDegrees(3), (square / 2 - 4) / 4, 1e-10);
  EXPECT_NEAR(LogSpreadOfDegrees(1001) * 2 * 1000, 1, 1e-5);  // 1 / (2 nu - 2) for large nu
}

TEST(DegreesOfLogSpread, InvertsIt) {
  for (double degrees : {1.0, 2.0, 3.7, 50.0, 12'345.0}) {
    EXPECT_NEAR(DegreesOfLogSpread(LogSpreadOfDegrees(degrees)) / degrees, 1, 1e-9);
  }
  EXPECT_TRUE(std::isinf(DegreesOfLogSpread(0)));
}

TEST(ChiSquaredLowerQuantile, IsCloseToThePublishedValues) {
  EXPECT_NEAR(ChiSquaredLowerQuantile(10, 0.01), 2.558, 0.05);
  EXPECT_NEAR(ChiSquaredLowerQuantile(30, 0.01), 14.953, 0.05);
  EXPECT_EQ(ChiSquaredLowerQuantile(1, 1e-6), 0);
}

}  // namespace
}  // namespace plumbline::conformance
