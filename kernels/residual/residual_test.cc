// SPDX-License-Identifier: Apache-2.0
// The residual join against the definition in integers, over sizes, offsets, bounds and types.
#include "kernels/residual/residual.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

int64_t Phase(double x, int64_t b) { return ((static_cast<int64_t>(x) + b) % (4 * b) + 4 * b) % (4 * b); }
double OracleFold(double x, int64_t b) {
  return static_cast<double>(Phase(x, b) <= 2 * b ? Phase(x, b) - b : 3 * b - Phase(x, b));
}

template <typename From, typename T>
void CheckBackward(int64_t bound, int64_t gradient_bound) {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Integers integers;
    const std::vector<double> branch = integers.Vector(size, -250, 250);
    const std::vector<double> x = integers.Vector(size, -250, 250);
    const std::vector<double> dx = integers.Vector(size, -gradient_bound, gradient_bound);
    std::vector<double> expected;
    for (int64_t i = 0; i < size; ++i) {
      const double slope = Phase(x[i], bound) < 2 * bound ? 1 : -1;
      expected.push_back(OracleFold(dx[i] + OracleFold(branch[i], gradient_bound) * slope, gradient_bound));
    }
    const Guarded<From> branch_memory(branch, offset);
    const Guarded<T> x_memory(x, (offset + 1) % testing::kNumOffsets);
    Guarded<T> dx_memory(dx, (offset + 7) % testing::kNumOffsets);
    ResidualBackward<From, T>(branch_memory.view(), x_memory.view(), static_cast<float>(bound),
                              static_cast<float>(gradient_bound), dx_memory.span());
    REQUIRE(dx_memory.Values() == expected);
    REQUIRE(dx_memory.GuardsAreIntact());
  });
}

TEST_CASE("ResidualBackwardFoldsTheBranchThenTheSum") {
  for (const auto& [bound, gradient_bound] : {std::pair{1, 1}, std::pair{2, 4}, std::pair{5, 3}}) {
    CheckBackward<float, float>(bound, gradient_bound);
    CheckBackward<BFloat16, BFloat16>(bound, gradient_bound);
    CheckBackward<float, BFloat16>(bound, gradient_bound);
    CheckBackward<Float16, Float16>(bound, gradient_bound);
    CheckBackward<float, Float16>(bound, gradient_bound);
  }
}

TEMPLATE_TEST_CASE("ResidualForwardAddsAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    testing::Integers integers;
    const std::vector<double> x = integers.Vector(size, -128, 128);
    const std::vector<double> branch = integers.Vector(size, -128, 128);
    const Guarded<TestType> x_memory(x, offset);
    Guarded<TestType> y(branch, (offset + 4) % testing::kNumOffsets);
    ResidualForward<TestType>(x_memory.view(), y.view(), y.span());
    std::vector<double> expected;
    for (int64_t i = 0; i < size; ++i) expected.push_back(x[i] + branch[i]);
    REQUIRE(y.Values() == expected);
    REQUIRE(y.GuardsAreIntact());
  });
}

TEST_CASE("InFp16TheJoinOverflowsToInfinityAndMayBeSubnormal") {
  Guarded<Float16> y({40000, -65504, 0x1p-24}, 0);
  ResidualForward<Float16>(Guarded<Float16>({40000, 32, 0x1p-24}, 0).view(), y.view(), y.span());
  REQUIRE(y.Values() == std::vector<double>{INFINITY, -65472, 0x1p-23});
}

TEST_CASE("NanInAnyInputOfTheJoinGivesNan") {
  const std::vector<float> good = {1}, bad = {NAN};
  for (const auto& [branch, x, dx] :
       {std::tuple{bad, good, good}, std::tuple{good, bad, good}, std::tuple{good, good, bad}}) {
    std::vector<float> result = dx;
    ResidualBackward<float, float>(branch, x, 2, 4, result);
    REQUIRE(std::isnan(result[0]));
  }
}

TEST_CASE("ResidualRefusesDifferentSizes") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((ResidualForward<float>(three, four, three)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((ResidualBackward<float, float>(three, four, 2, 4, three)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
