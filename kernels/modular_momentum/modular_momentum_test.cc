// SPDX-License-Identifier: Apache-2.0
// The update against integer arithmetic, over sizes, offsets, bounds, step counters and the largest gradients.
#include "kernels/modular_momentum/modular_momentum.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

int64_t MathematicalMod(int64_t x, int64_t n) { return (x % n + n) % n; }

TEMPLATE_TEST_CASE("ModularMomentumEqualsTheDefinitionAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  constexpr int64_t kLargest = int64_t{1} << 24;
  for (const int64_t w : {1, 2, 5}) {
    const int64_t m = 8 * (2 * w + 1);
    for (const int64_t t : {int64_t{1}, int64_t{2}, int64_t{29}, m, m + 1, int64_t{100000007}}) {
      testing::ForEachPlacement([&](int64_t size, int64_t offset) {
        testing::Integers integers(w * 1000 + t);
        std::vector<double> gradient = integers.Vector(size, -kLargest, kLargest);
        if (size > 1) gradient[0] = kLargest, gradient[1] = -kLargest;
        std::vector<double> moment = integers.Vector(size, -14, 14);
        std::vector<double> master = integers.Vector(size, 0, m - 1);
        const Guarded<float> gradient_memory(gradient, offset);
        Guarded<float> moment_memory(moment, (offset + 1) % testing::kNumOffsets);
        Guarded<float> master_memory(master, (offset + 2) % testing::kNumOffsets);
        Guarded<TestType> weight_memory(size, (offset + 3) % testing::kNumOffsets);
        ModularMomentumStep<TestType>(t, w, gradient_memory.view(), moment_memory.span(), master_memory.span(),
                                      weight_memory.span());
        std::vector<double> weight;
        for (int64_t i = 0; i < size; ++i) {
          const auto sum = static_cast<int64_t>(moment[i]) + static_cast<int64_t>(gradient[i]) + t;
          const int64_t new_moment = MathematicalMod(sum + 14, 29) - 14;
          const int64_t new_master = MathematicalMod(static_cast<int64_t>(master[i]) - new_moment - t, m);
          moment[i] = static_cast<double>(new_moment);
          master[i] = static_cast<double>(new_master);
          weight.push_back(static_cast<double>(new_master / 8 - w));
        }
        REQUIRE(moment_memory.Values() == moment);
        REQUIRE(master_memory.Values() == master);
        REQUIRE(weight_memory.Values() == weight);
        REQUIRE(
            (moment_memory.GuardsAreIntact() && master_memory.GuardsAreIntact() && weight_memory.GuardsAreIntact()));
      });
    }
  }
}

TEST_CASE("AGradientThatIsNotANumberReachesTheWeights") {
  std::vector<float> gradient = {NAN}, moment = {0}, master = {0}, weight = {0};
  ModularMomentumStep<float>(1, 1, gradient, moment, master, weight);
  REQUIRE((std::isnan(moment[0]) && std::isnan(master[0]) && std::isnan(weight[0])));
}

TEST_CASE("ModularMomentumRefusesSizesCountersAndBounds") {
  std::vector<float> a(3), b(3), c(3), d(4), e(3);
  REQUIRE_THROWS_WITH(ModularMomentumStep<float>(1, 1, a, b, c, std::span<float>(d)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(ModularMomentumStep<float>(0, 1, a, b, c, std::span<float>(e)), Catch::Contains("at least 1"));
  REQUIRE_THROWS_WITH(ModularMomentumStep<float>(1, 0, a, b, c, std::span<float>(e)), Catch::Contains("[1, 2^20]"));
}

}  // namespace
}  // namespace plumbline::kernels
