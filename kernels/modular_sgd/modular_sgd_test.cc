// SPDX-License-Identifier: Apache-2.0
// The update against integer arithmetic, over sizes, offsets, bounds and the largest gradients.
#include "kernels/modular_sgd/modular_sgd.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

int64_t MathematicalMod(int64_t x, int64_t n) { return (x % n + n) % n; }

TEMPLATE_TEST_CASE("ModularSgdEqualsTheDefinitionAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  constexpr int64_t kLargest = int64_t{1} << 24;
  for (const int64_t w : {1, 2, 5, 100}) {
    const int64_t m = 8 * (2 * w + 1);
    testing::ForEachPlacement([&](int64_t size, int64_t offset) {
      testing::Integers integers(w);
      std::vector<double> gradient = integers.Vector(size, -kLargest, kLargest);
      if (size > 1) gradient[0] = kLargest, gradient[1] = -kLargest;
      std::vector<double> master = integers.Vector(size, 0, m - 1);
      const Guarded<float> gradient_memory(gradient, offset);
      Guarded<float> master_memory(master, (offset + 2) % testing::kNumOffsets);
      Guarded<TestType> weight_memory(size, (offset + 3) % testing::kNumOffsets);
      ModularSgdStep<TestType>(w, gradient_memory.view(), master_memory.span(), weight_memory.span());
      std::vector<double> weight;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t updated = MathematicalMod(static_cast<int64_t>(master[i]) - static_cast<int64_t>(gradient[i]), m);
        master[i] = static_cast<double>(updated);
        weight.push_back(static_cast<double>(updated / 8 - w));
      }
      REQUIRE(master_memory.Values() == master);
      REQUIRE(weight_memory.Values() == weight);
      REQUIRE((master_memory.GuardsAreIntact() && weight_memory.GuardsAreIntact()));
    });
  }
}

TEST_CASE("ModularSgdRefusesSizesAndBounds") {
  std::vector<float> a(3), b(3), c(4), d(3);
  REQUIRE_THROWS_WITH(ModularSgdStep<float>(1, a, b, std::span<float>(c)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(ModularSgdStep<float>(0, a, b, std::span<float>(d)), Catch::Contains("[1, 2^20]"));
}

}  // namespace
}  // namespace plumbline::kernels
