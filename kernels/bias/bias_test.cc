// SPDX-License-Identifier: Apache-2.0
// The bias of every row and the sums of columns, over sizes, offsets and types.
#include "kernels/bias/bias.h"

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
constexpr int64_t kWidths[] = {1, 2, 3, 7, 8, 15, 16, 17, 33, 97};
constexpr int64_t kRows[] = {0, 1, 2, 5, 31};

template <typename From, typename T>
void CheckForward() {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRows) {
      const std::vector<double> x = Reals(1).Vector<From>(rows * width, -3, 3);
      const std::vector<double> bias = Reals(2).Vector<T>(width, -3, 3);
      std::vector<double> first;
      for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
        Guarded<T> y(rows * width, offset);
        BiasForward<From, T>(rows, Guarded<From>(x, offset).view(), Guarded<T>(bias, (offset + 3) % 7).view(),
                             y.span());
        REQUIRE(y.GuardsAreIntact());
        if (offset == 0) first = y.Values();
        REQUIRE(y.Values() == first);
      }
      for (int64_t i = 0; i < rows * width; ++i) {
        const double expected = x[i] + bias[i % width];
        REQUIRE(Within(first[i], expected, kBiasMaxUnits * kUnit * std::abs(expected) + 1.01 * Rounding<T>(expected)));
      }
    }
  }
}

TEST_CASE("BiasIsAddedToEveryRowAtEverySizeAndOffset") {
  CheckForward<float, float>();
  CheckForward<float, BFloat16>();
  CheckForward<float, Float16>();
  CheckForward<BFloat16, BFloat16>();
  CheckForward<Float16, Float16>();
}

TEST_CASE("BiasForwardWorksInPlace") {
  std::vector<float> x = {1, 2, 3, 4}, bias = {10, 20};
  BiasForward<float, float>(2, x, bias, x);
  REQUIRE(x == std::vector<float>{11, 22, 13, 24});
}

TEMPLATE_TEST_CASE("BiasGradientAddsColumnsToWhatIsThere", "", float, BFloat16, Float16) {
  for (const int64_t width : kWidths) {
    for (const int64_t rows : kRows) {
      const std::vector<double> dy = Reals(1).Vector<TestType>(rows * width, -3, 3);
      const std::vector<double> before = Reals(2).Vector<float>(width, -3, 3);
      std::vector<double> first;
      for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
        Guarded<float> dbias(before, offset);
        BiasBackward<TestType>(rows, Guarded<TestType>(dy, (offset + 5) % 11).view(), dbias.span());
        REQUIRE(dbias.GuardsAreIntact());
        if (offset == 0) first = dbias.Values();
        REQUIRE(dbias.Values() == first);
      }
      for (int64_t c = 0; c < width; ++c) {
        double sum = before[c], magnitude = std::abs(before[c]);
        for (int64_t row = 0; row < rows; ++row) {
          sum += dy[row * width + c];
          magnitude += std::abs(dy[row * width + c]);
        }
        REQUIRE(Within(first[c], sum, BiasGradientMaxUnits(rows) * kUnit * magnitude));
      }
    }
  }
}

TEST_CASE("BiasPassesNanOn") {
  std::vector<float> x = {1, NAN, 3, 4}, bias = {10, 20}, sums = {0, 0};
  BiasBackward<float>(2, x, sums);
  REQUIRE((sums[0] == 4 && std::isnan(sums[1])));
  BiasForward<float, float>(2, x, bias, x);
  REQUIRE((x[0] == 11 && std::isnan(x[1]) && x[3] == 24));
}

TEST_CASE("InFp16SumsWithABiasOverflowToInfinityAndMayBeSubnormal") {
  const std::vector<double> x = {65504, 65488, -65504, 1e-6, 3e6};
  std::vector<double> exact = {0x1p-20, 0x1p-24, -0x1p-24};
  Guarded<Float16> y(5, 0);
  BiasForward<float, Float16>(1, Guarded<float>(x, 0).view(), Guarded<Float16>({16, 16, -16, 0, 0}, 0).view(),
                              y.span());
  REQUIRE(y.Values() == std::vector<double>{INFINITY, 65504, -INFINITY, 17 * 0x1p-24, INFINITY});
  Guarded<Float16> sums(3, 0);
  BiasForward<Float16, Float16>(1, Guarded<Float16>(exact, 0).view(), Guarded<Float16>({0, 0x1p-24, 65504}, 0).view(),
                                sums.span());
  REQUIRE(sums.Values() == std::vector<double>{0x1p-20, 0x1p-23, 65504});
  std::vector<float> dbias(1);
  BiasBackward<Float16>(2, Guarded<Float16>({65504, 65504}, 0).view(), dbias);
  REQUIRE(dbias[0] == 131008);  // sums of gradients are float
}

TEST_CASE("BiasRefusesWrongSizes") {
  std::vector<float> four(4), five(5), two(2);
  REQUIRE_THROWS_WITH((BiasForward<float, float>(2, five, two, four)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((BiasForward<float, float>(2, four, two, five)), Catch::Contains("shape"));
  REQUIRE_THROWS_WITH((BiasBackward<float>(3, four, two)), Catch::Contains("shape"));
}

}  // namespace
}  // namespace plumbline::kernels
