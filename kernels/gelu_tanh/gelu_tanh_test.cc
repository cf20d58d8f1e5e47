// SPDX-License-Identifier: Apache-2.0
// Forward and backward against tanh in double over a dense range and at every size and offset; the oracle's derivative
// against finite differences.
#include "kernels/gelu_tanh/gelu_tanh.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Rounding;
using testing::Within;

constexpr double kUnit = 0x1p-24;

// As docs/semantics.md writes it, in long double: 1 + tanh cancels.
double Gelu(double value) {
  const long double x = value;
  return static_cast<double>(0.5L * x *
                             (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846L) * (x + 0.044715L * x * x * x))));
}

double GeluSlope(double value) {
  const long double x = value;
  const long double c = std::sqrt(2 / 3.14159265358979323846L);
  const long double t = std::tanh(c * (x + 0.044715L * x * x * x));
  return static_cast<double>(0.5L * (1 + t) + 0.5L * x * (1 - t * t) * c * (1 + 3 * 0.044715L * x * x));
}

std::vector<double> Grid(double low, double high, int64_t steps) {
  std::vector<double> values;
  for (int64_t i = 0; i <= steps; ++i) {
    values.push_back(static_cast<float>(low + (high - low) * static_cast<double>(i) / static_cast<double>(steps)));
  }
  return values;
}

template <typename T>
std::vector<double> Forward(const std::vector<double>& x, int64_t offset) {
  Guarded<T> y(x, offset);  // in place
  GeluTanhForward<T>(y.view(), y.span());
  REQUIRE(y.GuardsAreIntact());
  return y.Values();
}

template <typename T>
std::vector<double> Backward(const std::vector<double>& dy, const std::vector<double>& x, int64_t offset) {
  Guarded<T> dx(dy, offset);  // in place
  GeluTanhBackward<T>(dx.view(), Guarded<T>(x, offset + 1).view(), dx.span());
  REQUIRE(dx.GuardsAreIntact());
  return dx.Values();
}

TEMPLATE_TEST_CASE("GeluKeepsItsDeclaredErrorOverTheRangeWhereItBends", "", float, BFloat16, Float16) {
  std::vector<double> x = Guarded<TestType>(Grid(-12, 12, 40000), 0).Values();
  const std::vector<double> dy = Reals(3).Vector<TestType>(static_cast<int64_t>(x.size()), -2, 2);
  const std::vector<double> y = Forward<TestType>(x, 0);
  const std::vector<double> dx = Backward<TestType>(dy, x, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    const double bound = kGeluTanhMaxUnits * kUnit * std::abs(x[i]) + 1.01 * Rounding<TestType>(Gelu(x[i]));
    REQUIRE(Within(y[i], Gelu(x[i]), bound));
    const double slope = dy[i] * GeluSlope(x[i]);
    const double slope_bound = kGeluTanhBackwardMaxUnits * kUnit * std::abs(dy[i]) + 1.01 * Rounding<TestType>(slope);
    REQUIRE(Within(dx[i], slope, slope_bound));
  }
}

TEMPLATE_TEST_CASE("GeluDoesNotDependOnPlaceAtAnySizeAndOffset", "", float, BFloat16, Float16) {
  const std::vector<double> x = Reals(1).Vector<TestType>(300, -6, 6);
  const std::vector<double> dy = Reals(2).Vector<TestType>(300, -1, 1);
  const auto part = [](const std::vector<double>& values, int64_t begin, int64_t size) {
    return std::vector<double>(values.begin() + begin, values.begin() + begin + size);
  };
  REQUIRE(testing::ResultsAreIndependentOfPlacement(
      [&](int64_t begin, int64_t size, int64_t offset) { return Forward<TestType>(part(x, begin, size), offset); }));
  REQUIRE(testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
    return Backward<TestType>(part(dy, begin, size), part(x, begin, size), offset);
  }));
}

TEST_CASE("TheOraclesSlopeIsTheDerivative") {
  for (const double x : Grid(-6, 6, 997)) {
    REQUIRE(Within(GeluSlope(x), (Gelu(x + 1e-5) - Gelu(x - 1e-5)) / 2e-5, 1e-9));
  }
}

TEMPLATE_TEST_CASE("GeluOfSpecialValues", "", float, BFloat16, Float16) {
  const std::vector<double> x = testing::SpecialValues<TestType>();
  const std::vector<double> y = Forward<TestType>(x, 0);
  const std::vector<double> dx = Backward<TestType>(std::vector<double>(x.size(), 1.0), x, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    INFO("x = " << x[i] << ", y = " << y[i] << ", dx = " << dx[i]);
    if (std::isnan(x[i])) {
      REQUIRE((std::isnan(y[i]) && std::isnan(dx[i])));
      continue;
    }
    REQUIRE(Within(dx[i], x[i] > 100 ? 1 : x[i] < -100 ? 0 : GeluSlope(x[i]), 1.1 * kUnitRoundoff<TestType> + 3e-6));
    if (x[i] == -INFINITY) {
      REQUIRE(std::isnan(y[i]));
    } else if (std::isinf(x[i])) {
      REQUIRE(y[i] == x[i]);
    } else {
      const double expected = x[i] > 100 ? x[i] : x[i] < -100 ? 0 : Gelu(x[i]);
      REQUIRE(
          Within(y[i], expected,
                 kGeluTanhMaxUnits * kUnit * std::abs(x[i] < -100 ? 1 : x[i]) + 1.01 * Rounding<TestType>(expected)));
    }
  }
}

TEST_CASE("InFp16GeluKeepsSubnormalNumbersAndItsGradientsOverflowToInfinity") {
  testing::Float16Extremes forward, backward;
  for (const double size : {1e-6, 65000.0}) {
    const std::vector<double> x = Reals(1).Vector<Float16>(300, -4, 4), dy = Reals(2).Vector<Float16>(300, -size, size);
    const std::vector<double> small = Reals(3).Vector<Float16>(300, -size, size), y = Forward<Float16>(small, 0);
    const std::vector<double> dx = Backward<Float16>(dy, x, 0);
    for (size_t i = 0; i < x.size(); ++i) {
      REQUIRE(backward.Takes(dx[i], dy[i] * GeluSlope(x[i]), kGeluTanhBackwardMaxUnits * kUnit * std::abs(dy[i])));
      REQUIRE(forward.Takes(y[i], Gelu(small[i]), kGeluTanhMaxUnits * kUnit * std::abs(small[i])));
    }
  }
  REQUIRE((backward.SawBoth() && forward.SawSubnormal()));
}

TEST_CASE("GeluRefusesDifferentSizes") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((GeluTanhForward<float>(three, four)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((GeluTanhBackward<float>(three, four, four)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
