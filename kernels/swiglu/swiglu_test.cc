// SPDX-License-Identifier: Apache-2.0
// Forward and backward against the formulas in long double over a dense range and at every size and offset; the
// oracle's derivative against finite differences.
#include "kernels/swiglu/swiglu.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Rounding;
using testing::Within;
using Values = std::vector<double>;

constexpr double kUnit = 0x1p-24;

double Silu(double value) {
  const long double x = value;
  return static_cast<double>(x / (1 + std::exp(-x)));
}

double SiluSlope(double value) {
  const long double x = value, s = 1 / (1 + std::exp(-x));
  return static_cast<double>(s + x * s * (1 - s));
}

template <typename T>
Values Grid(double low, double high, int64_t steps) {
  Values values;
  for (int64_t i = 0; i <= steps; ++i) {
    values.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(steps));
  }
  return Guarded<T>(values, 0).Values();
}

template <typename T>
Values Forward(const Values& gate, const Values& up, int64_t offset) {
  Guarded<T> y(gate, offset);  // in place
  SwigluForward<T>(y.view(), Guarded<T>(up, offset + 1).view(), y.span());
  REQUIRE(y.GuardsAreIntact());
  return y.Values();
}

// (dgate, dup), in place of dy and of up.
template <typename T>
std::pair<Values, Values> Backward(const Values& dy, const Values& gate, const Values& up, int64_t offset) {
  Guarded<T> dgate(dy, offset), dup(up, offset + 2);
  SwigluBackward<T>(dgate.view(), Guarded<T>(gate, offset + 1).view(), dup.view(), dgate.span(), dup.span());
  REQUIRE((dgate.GuardsAreIntact() && dup.GuardsAreIntact()));
  return {dgate.Values(), dup.Values()};
}

TEMPLATE_TEST_CASE("SwigluKeepsItsDeclaredErrorWhereItBendsAndWhereItsExponentialUnderflows", "", float, BFloat16,
                   Float16) {
  for (const double range : {12.0, 100.0}) {
    const Values gate = Grid<TestType>(-range, range, 40000);
    const auto size = static_cast<int64_t>(gate.size());
    const Values up = Reals(2).Vector<TestType>(size, -2, 2), dy = Reals(3).Vector<TestType>(size, -2, 2);
    const Values y = Forward<TestType>(gate, up, 0);
    const auto [dgate, dup] = Backward<TestType>(dy, gate, up, 0);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double value = Silu(gate[i]) * up[i], up_slope = dy[i] * Silu(gate[i]);
      const double gate_slope = dy[i] * up[i] * SiluSlope(gate[i]);
      const double unit = kSwigluMaxUnits * kUnit;
      REQUIRE(Within(y[i], value,
                     unit * std::abs(value) + kSwigluUnderflow * std::abs(up[i]) + 1.01 * Rounding<TestType>(value)));
      REQUIRE(
          Within(dup[i], up_slope,
                 unit * std::abs(up_slope) + kSwigluUnderflow * std::abs(dy[i]) + 1.01 * Rounding<TestType>(up_slope)));
      REQUIRE(Within(dgate[i], gate_slope,
                     kSwigluGateMaxUnits * kUnit * std::abs(dy[i] * up[i]) + 1.01 * Rounding<TestType>(gate_slope)));
    }
  }
}

TEMPLATE_TEST_CASE("SwigluDoesNotDependOnPlaceAtAnySizeAndOffset", "", float, BFloat16, Float16) {
  const Values gate = Reals(1).Vector<TestType>(300, -6, 6);
  const Values up = Reals(2).Vector<TestType>(300, -1, 1), dy = Reals(3).Vector<TestType>(300, -1, 1);
  const auto part = [](const Values& values, int64_t begin, int64_t size) {
    return Values(values.begin() + begin, values.begin() + begin + size);
  };
  REQUIRE(testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
    return Forward<TestType>(part(gate, begin, size), part(up, begin, size), offset);
  }));
  for (const bool of_gate : {false, true}) {
    REQUIRE(testing::ResultsAreIndependentOfPlacement([&](int64_t begin, int64_t size, int64_t offset) {
      const auto [dgate, dup] =
          Backward<TestType>(part(dy, begin, size), part(gate, begin, size), part(up, begin, size), offset);
      return of_gate ? dgate : dup;
    }));
  }
}

TEST_CASE("TheOraclesSlopeIsTheDerivative") {
  for (const double x : Grid<float>(-6, 6, 997)) {
    REQUIRE(Within(SiluSlope(x), (Silu(x + 1e-5) - Silu(x - 1e-5)) / 2e-5, 1e-9));
  }
}

TEMPLATE_TEST_CASE("SwigluOfSpecialValues", "", float, BFloat16, Float16) {
  const Values gate = testing::SpecialValues<TestType>();
  const Values ones(gate.size(), 1.0);
  const Values y = Forward<TestType>(gate, ones, 0);
  const auto [dgate, dup] = Backward<TestType>(ones, gate, ones, 0);
  for (size_t i = 0; i < gate.size(); ++i) {
    INFO("gate = " << gate[i] << ", y = " << y[i] << ", dgate = " << dgate[i]);
    REQUIRE(testing::SameBits(y[i], dup[i]));
    if (std::isnan(gate[i])) {
      REQUIRE((std::isnan(y[i]) && std::isnan(dgate[i])));
      continue;
    }
    const double slope = gate[i] > 100 ? 1 : gate[i] < -100 ? 0 : SiluSlope(gate[i]);
    REQUIRE(Within(dgate[i], slope, kSwigluGateMaxUnits * kUnit + 1.01 * Rounding<TestType>(slope)));
    if (gate[i] == -INFINITY) {
      REQUIRE(std::isnan(y[i]));
    } else if (gate[i] < -100) {
      REQUIRE(y[i] == 0);
    } else {
      const double value = gate[i] > 100 ? gate[i] : Silu(gate[i]);
      REQUIRE(Within(y[i], value, kSwigluMaxUnits * kUnit * std::abs(value) + 1.01 * Rounding<TestType>(value)));
    }
  }
  REQUIRE(std::isnan(Forward<TestType>({1.0}, {NAN}, 0)[0]));
}

TEST_CASE("InFp16SwigluKeepsSubnormalNumbersAndOverflowsToInfinity") {
  testing::Float16Extremes forward, of_gate, of_up;
  for (const double size : {1e-4, 1.0, 400.0}) {
    const Values gate = Reals(1).Vector<Float16>(300, -size, size), up = Reals(2).Vector<Float16>(300, -size, size);
    const Values dy = Reals(3).Vector<Float16>(300, -size, size), y = Forward<Float16>(gate, up, 0);
    const auto [dgate, dup] = Backward<Float16>(dy, gate, up, 0);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double bound = kSwigluGateMaxUnits * kUnit * size * size;
      REQUIRE(forward.Takes(y[i], Silu(gate[i]) * up[i], bound));
      REQUIRE(of_gate.Takes(dgate[i], dy[i] * up[i] * SiluSlope(gate[i]), bound));
      REQUIRE(of_up.Takes(dup[i], dy[i] * Silu(gate[i]), bound));
    }
  }
  REQUIRE((forward.SawBoth() && of_gate.SawBoth() && of_up.SawBoth()));
}

TEST_CASE("SwigluRefusesDifferentSizes") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((SwigluForward<float>(three, four, three)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((SwigluForward<float>(three, three, four)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((SwigluBackward<float>(three, three, three, three, four)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((SwigluBackward<float>(three, four, three, three, three)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
