// SPDX-License-Identifier: Apache-2.0
// The masked fold of scores against the definition; what lies above the diagonal is poisoned and must not matter.
#include "kernels/causal_fold/causal_fold.h"

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

TEMPLATE_TEST_CASE("OnlyVisiblePositionsAreFoldedAndReadForwardAndBackward", "", float, BFloat16, Float16) {
  constexpr int64_t kBound = 2;
  constexpr int64_t kGradientBound = 5;
  for (const int64_t positions : {1, 2, 3, 7, 8, 9, 17}) {
    for (const int64_t matrices : {0, 1, 3}) {
      for (int64_t offset = 0; offset < testing::kNumOffsets; ++offset) {
        testing::Integers integers(positions);
        const int64_t size = matrices * positions * positions;
        std::vector<double> z = integers.Vector(size, -200, 200);
        std::vector<double> da = integers.Vector(size, -200, 200);
        std::vector<double> expected_a(size, 0.0), expected_ds(size, 0.0);
        for (int64_t i = 0; i < size; ++i) {
          const int64_t s = i / positions % positions;
          const int64_t t = i % positions;
          if (t <= s) {
            expected_a[i] = OracleFold(z[i], kBound);
            expected_ds[i] = OracleFold(da[i], kGradientBound) * (Phase(z[i], kBound) < 2 * kBound ? 1 : -1);
          } else {
            z[i] = da[i] = std::nan("");
          }
        }
        const Guarded<TestType> scores(z, offset);
        Guarded<TestType> a(size, (offset + 1) % testing::kNumOffsets);
        CausalFoldForward<TestType>(positions, scores.view(), kBound, a.span());
        REQUIRE(a.Values() == expected_a);
        REQUIRE(a.GuardsAreIntact());
        Guarded<TestType> ds(da, (offset + 2) % testing::kNumOffsets);
        CausalFoldBackward<TestType>(positions, ds.view(), scores.view(), kBound, kGradientBound, ds.span());
        REQUIRE(ds.Values() == expected_ds);
        REQUIRE(ds.GuardsAreIntact());
      }
    }
  }
}

TEST_CASE("CausalFoldRefusesSizesThatAreNoSquareMatrices") {
  std::vector<float> five(5), four(4);
  REQUIRE_THROWS_WITH((CausalFoldForward<float>(2, five, 2, five)), Catch::Contains("multiple of positions squared"));
  REQUIRE_THROWS_WITH((CausalFoldForward<float>(2, five, 2, four)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((CausalFoldForward<float>(0, four, 2, four)), Catch::Contains("at least 1"));
  REQUIRE_THROWS_WITH((CausalFoldBackward<float>(2, four, five, 2, 2, four)), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
