// SPDX-License-Identifier: Apache-2.0
// Tables against angles in long double; turning against complex numbers in double within the declared errors; that the
// backward undoes it, that scores depend on distances only, and that nothing depends on a token's place.
#include "kernels/rope/rope.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <cstdint>
#include <tuple>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;
using testing::Rounding;
using testing::Within;

constexpr double kUnit = 0x1p-24;
constexpr double kTheta = 10000;
constexpr int64_t kHeadWidths[] = {2, 4, 6, 10, 16, 34, 64};

struct Table {
  Table(int64_t first_position, int64_t positions, int64_t head_width, double theta = kTheta)
      : cosine(positions * head_width / 2, 3), sine(positions * head_width / 2, 1) {
    RopeTable(first_position, head_width, theta, cosine.span(), sine.span());
  }
  Guarded<float> cosine, sine;
};

double Angle(int64_t position, int64_t i, int64_t head_width, double theta) {
  const long double power = -2.0L * static_cast<long double>(i) / static_cast<long double>(head_width);
  return static_cast<double>(static_cast<long double>(position) * std::pow(static_cast<long double>(theta), power));
}

TEST_CASE("TablesHoldTheAnglesOfTheirPositionsAndTheirFirstPositionMovesThem") {
  for (const double theta : {1.5, 100.0, 10000.0}) {
    for (const int64_t head_width : kHeadWidths) {
      for (const int64_t first : {0, 1, 7, 4095}) {
        for (const int64_t positions : {0, 1, 2, 13}) {
          const Table table(first, positions, head_width, theta);
          REQUIRE((table.cosine.GuardsAreIntact() && table.sine.GuardsAreIntact()));
          for (int64_t k = 0; k < positions * head_width / 2; ++k) {
            const double a = Angle(first + k / (head_width / 2), k % (head_width / 2), head_width, theta);
            REQUIRE(Within(table.cosine.Values()[k], std::cos(a), RopeTableMaxError(a)));
            REQUIRE(Within(table.sine.Values()[k], std::sin(a), RopeTableMaxError(a)));
          }
        }
      }
    }
  }
}

// A pair is a complex number, and a turn a product with e^(i a) or its conjugate.
std::vector<double> Naive(const RopeSizes& sizes, const Table& table, const std::vector<double>& x, bool backward,
                          std::vector<double>& magnitude) {
  const std::vector<double> cosine = table.cosine.Values(), sine = table.sine.Values();
  const int64_t half = sizes.head_width / 2;
  std::vector<double> y = x;
  magnitude = x;
  for (int64_t at = 0; at < static_cast<int64_t>(x.size()); ++at) {
    if (at % sizes.head_width >= half) continue;
    const int64_t entry = at / (sizes.heads * sizes.head_width) % sizes.positions * half + at % sizes.head_width;
    const std::complex<double> turn(cosine[entry], sine[entry]);
    const std::complex<double> pair(x[at], x[at + half]);
    const std::complex<double> turned = pair * (backward ? std::conj(turn) : turn);
    y[at] = turned.real();
    y[at + half] = turned.imag();
    magnitude[at] = std::abs(x[at] * cosine[entry]) + std::abs(x[at + half] * sine[entry]);
    magnitude[at + half] = std::abs(x[at + half] * cosine[entry]) + std::abs(x[at] * sine[entry]);
  }
  return y;
}

template <typename T>
std::vector<double> Run(const RopeSizes& sizes, const Table& table, const std::vector<double>& x, bool backward,
                        int64_t offset) {
  Guarded<T> memory(x, offset);
  if (backward) {
    RopeBackward<T>(sizes, table.cosine.view(), table.sine.view(), memory.span());
  } else {
    RopeForward<T>(sizes, table.cosine.view(), table.sine.view(), memory.span());
  }
  REQUIRE(memory.GuardsAreIntact());
  return memory.Values();
}

TEMPLATE_TEST_CASE("RopeKeepsItsDeclaredErrorInBothDirections", "", float, BFloat16, Float16) {
  for (const int64_t head_width : kHeadWidths) {
    for (const auto& [samples, positions, heads] :
         {std::tuple{0, 3, 2}, std::tuple{1, 1, 1}, std::tuple{2, 5, 3}, std::tuple{3, 0, 1}, std::tuple{1, 7, 5}}) {
      const RopeSizes sizes{samples, positions, heads, head_width};
      const Table table(11, positions, head_width);
      const std::vector<double> x =
          Reals(static_cast<uint64_t>(head_width)).Vector<TestType>(samples * positions * heads * head_width, -3, 3);
      for (const bool backward : {false, true}) {
        std::vector<double> magnitude;
        const std::vector<double> expected = Naive(sizes, table, x, backward, magnitude);
        for (const int64_t offset : {0, 1, 5}) {
          const std::vector<double> y = Run<TestType>(sizes, table, x, backward, offset);
          for (size_t i = 0; i < x.size(); ++i) {
            const double bound = kRopeMaxUnits * kUnit * magnitude[i] + 1.01 * Rounding<TestType>(expected[i]);
            REQUIRE(Within(y[i], expected[i], bound));
          }
        }
      }
    }
  }
}

TEST_CASE("TheBackwardUndoesTheForward") {
  const RopeSizes sizes{2, 9, 3, 6};
  const Table table(4, 9, 6);
  const std::vector<double> x = Reals(1).Vector<float>(2 * 9 * 3 * 6, -1, 1);
  const std::vector<double> back = Run<float>(sizes, table, Run<float>(sizes, table, x, false, 0), true, 0);
  for (size_t i = 0; i < x.size(); ++i) REQUIRE(Within(back[i], x[i], 16 * kUnit * 2));
}

// What the rotation is for: the product of a query and a key depends on how far apart they are, not on where.
TEST_CASE("ProductsOfTurnedVectorsDependOnTheDistanceOnly") {
  constexpr int64_t kPositions = 12, kWidth = 10;
  const RopeSizes sizes{1, kPositions, 1, kWidth};
  const std::vector<double> q = Reals(1).Vector<float>(kWidth, -1, 1), k = Reals(2).Vector<float>(kWidth, -1, 1);
  std::vector<double> queries, keys;
  for (int64_t p = 0; p < kPositions; ++p) {
    queries.insert(queries.end(), q.begin(), q.end());
    keys.insert(keys.end(), k.begin(), k.end());
  }
  for (const int64_t first : {0, 300}) {
    const Table table(first, kPositions, kWidth);
    const std::vector<double> a = Run<float>(sizes, table, queries, false, 0);
    const std::vector<double> b = Run<float>(sizes, table, keys, false, 0);
    const auto product = [&](int64_t at, int64_t other) {
      double sum = 0;
      for (int64_t c = 0; c < kWidth; ++c) sum += a[at * kWidth + c] * b[other * kWidth + c];
      return sum;
    };
    for (int64_t p = 3; p < kPositions; ++p) REQUIRE(Within(product(p, p - 3), product(3, 0), 1e-5));
    REQUIRE(std::abs(product(3, 0) - product(0, 0)) > 1e-2);
  }
}

TEMPLATE_TEST_CASE("ATokensResultDependsOnItsPositionAlone", "", float, BFloat16, Float16) {
  const RopeSizes sizes{3, 5, 2, 34};
  const std::vector<double> x = Reals(1).Vector<TestType>(3 * 5 * 2 * 34, -1, 1);
  const std::vector<double> whole = Run<TestType>(sizes, Table(2, 5, 34), x, false, 0);
  for (int64_t token = 0; token < 15; ++token) {
    const auto row = [&](const std::vector<double>& values) {
      return std::vector<double>(&values[token * 68], &values[token * 68] + 68);
    };
    const Table table(2 + token % 5, 1, 34);
    REQUIRE(Run<TestType>({1, 1, 2, 34}, table, row(x), false, token) == row(whole));
  }
}

TEST_CASE("RopePassesNanOnWithinItsPair") {
  std::vector<double> x(8, 1.0);
  x[1] = NAN;
  const std::vector<double> y = Run<float>({1, 2, 1, 4}, Table(1, 2, 4), x, false, 0);
  for (size_t i = 0; i < 8; ++i) REQUIRE(std::isnan(y[i]) == (i == 1 || i == 3));
}

TEST_CASE("InFp16RopeKeepsSubnormalNumbersAndOverflowsToInfinity") {
  const RopeSizes sizes{2, 9, 3, 6};
  const Table table(4, 9, 6);
  testing::Float16Extremes extremes;
  for (const double size : {1e-5, 65000.0}) {
    const std::vector<double> x = Reals(1).Vector<Float16>(2 * 9 * 3 * 6, -size, size);
    for (const bool backward : {false, true}) {
      std::vector<double> magnitude;
      const std::vector<double> expected = Naive(sizes, table, x, backward, magnitude);
      const std::vector<double> y = Run<Float16>(sizes, table, x, backward, 0);
      for (size_t i = 0; i < x.size(); ++i) {
        REQUIRE(extremes.Takes(y[i], expected[i], kRopeMaxUnits * kUnit * magnitude[i]));
      }
    }
  }
  REQUIRE(extremes.SawBoth());
}

TEST_CASE("RopeRefusesWrongSizes") {
  std::vector<float> two(2), three(3), four(4);
  REQUIRE_THROWS_WITH(RopeTable(0, 3, kTheta, two, two), Catch::Contains("even"));
  REQUIRE_THROWS_WITH(RopeTable(0, 0, kTheta, two, two), Catch::Contains("even"));
  REQUIRE_THROWS_WITH(RopeTable(-1, 2, kTheta, two, two), Catch::Contains("first_position"));
  REQUIRE_THROWS_WITH(RopeTable(0, 2, 0, two, two), Catch::Contains("theta"));
  REQUIRE_THROWS_WITH(RopeTable(0, 2, kTheta, two, three), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH(RopeTable(0, 4, kTheta, three, three), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((RopeForward<float>({1, 2, 1, 2}, two, two, three)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((RopeForward<float>({1, 2, 1, 2}, two, three, four)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((RopeBackward<float>({1, 2, 1, 1}, two, two, two)), Catch::Contains("even"));
  REQUIRE_THROWS_WITH((RopeBackward<float>({-1, 2, 1, 2}, two, two, four)), Catch::Contains("negative"));
}

}  // namespace
}  // namespace plumbline::kernels
