// SPDX-License-Identifier: Apache-2.0
// The MLP's activation against the definition in integers, over sizes, offsets, bounds and types.
#include "kernels/fold_relu/fold_relu.h"

#include <algorithm>
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

TEMPLATE_TEST_CASE("FoldReluEqualsTheDefinitionForwardAndBackward", "", float, BFloat16, Float16) {
  for (const int64_t bound : {1, 2, 5}) {
    const int64_t gradient_bound = 2 * bound + 1;
    testing::ForEachPlacement([&](int64_t size, int64_t offset) {
      testing::Integers integers;
      const std::vector<double> z = integers.Vector(size, -200, 200);
      const std::vector<double> dr = integers.Vector(size, -200, 200);
      std::vector<double> expected_r, expected_dz;
      for (int64_t i = 0; i < size; ++i) {
        const double folded = OracleFold(z[i], bound);
        const double slope = Phase(z[i], bound) < 2 * bound ? 1 : -1;
        expected_r.push_back(std::max(folded, 0.0));
        expected_dz.push_back(folded > 0 ? OracleFold(dr[i], gradient_bound) * slope : 0);
      }
      const Guarded<TestType> input(z, offset);
      Guarded<TestType> r(size, (offset + 1) % testing::kNumOffsets);
      FoldReluForward<TestType>(input.view(), static_cast<float>(bound), r.span());
      REQUIRE(r.Values() == expected_r);
      REQUIRE(r.GuardsAreIntact());

      Guarded<TestType> dz(dr, (offset + 2) % testing::kNumOffsets);
      FoldReluBackward<TestType>(dz.view(), input.view(), static_cast<float>(bound), static_cast<float>(gradient_bound),
                                 dz.span());
      REQUIRE(dz.Values() == expected_dz);
      REQUIRE(dz.GuardsAreIntact());
    });
  }
}

TEST_CASE("FoldReluKeepsNan") {
  const Guarded<float> z(std::vector<double>{NAN}, 0);
  Guarded<float> r(1, 0);
  Guarded<float> dz(std::vector<double>{1}, 0);
  FoldReluForward<float>(z.view(), 2, r.span());
  FoldReluBackward<float>(dz.view(), z.view(), 2, 4, dz.span());
  REQUIRE(std::isnan(r.Values()[0]));
  REQUIRE(std::isnan(dz.Values()[0]));
}

TEST_CASE("FoldReluRefusesDifferentSizesAndBounds") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH(FoldReluForward<float>(three, 2, four), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(FoldReluBackward<float>(three, four, 2, 4, three), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(FoldReluBackward<float>(three, three, 2, 0, three), Catch::Contains("[1, 2^20]"));
}

}  // namespace
}  // namespace plumbline::kernels
