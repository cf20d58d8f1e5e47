// SPDX-License-Identifier: Apache-2.0
// Fold and slope against the definition in integers, over sizes, offsets, bounds and types.
#include "kernels/fold/fold.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/sizes.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

int64_t Phase(int64_t x, int64_t b) { return ((x + b) % (4 * b) + 4 * b) % (4 * b); }
double OracleFold(double x, int64_t b) {
  const int64_t p = Phase(static_cast<int64_t>(x), b);
  return static_cast<double>(p <= 2 * b ? p - b : 3 * b - p);
}
double OracleSlope(double x, int64_t b) { return Phase(static_cast<int64_t>(x), b) < 2 * b ? 1 : -1; }

// Integers around zero and at both ends of what the type holds exactly.
template <typename T>
std::vector<double> Inputs(int64_t size, int64_t bound) {
  testing::Integers integers;
  const int64_t limit = std::min(testing::kExactLimit<T>, testing::kExactLimit<float> - bound - 1);
  std::vector<double> values = integers.Vector(size, -6 * bound, 6 * bound);
  for (double& value : values) {
    const int64_t place = integers.In(0, 3);
    value = place == 0 ? static_cast<double>(limit - integers.In(0, 9 * bound)) : value;
    value = place == 1 ? -static_cast<double>(limit - integers.In(0, 9 * bound)) : value;
    value = std::max(-static_cast<double>(limit), std::min(static_cast<double>(limit), value));
  }
  return values;
}

TEMPLATE_TEST_CASE("FoldForwardEqualsTheDefinitionAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const int64_t bound : {1, 2, 3, 4, 7, 13}) {
    testing::ForEachPlacement([&](int64_t size, int64_t offset) {
      const std::vector<double> x = Inputs<TestType>(size, bound);
      const Guarded<TestType> input(x, offset);
      Guarded<TestType> output(size, (offset + 5) % testing::kNumOffsets);
      FoldForward<TestType, TestType>(input.view(), static_cast<float>(bound), output.span());
      std::vector<double> expected;
      for (const double value : x) expected.push_back(OracleFold(value, bound));
      REQUIRE(output.Values() == expected);
      REQUIRE(output.GuardsAreIntact());
    });
  }
}

TEMPLATE_TEST_CASE("FoldBackwardEqualsTheDefinitionAtEverySizeAndOffset", "", float, BFloat16, Float16) {
  for (const int64_t bound : {1, 2, 3, 4, 7, 13}) {
    testing::ForEachPlacement([&](int64_t size, int64_t offset) {
      const std::vector<double> x = Inputs<TestType>(size, bound);
      const std::vector<double> dy = testing::Integers(1).Vector(size, -9, 9);
      const Guarded<TestType> unfolded(x, offset);
      Guarded<TestType> gradient(dy, (offset + 3) % testing::kNumOffsets);
      FoldBackward<TestType>(gradient.view(), unfolded.view(), static_cast<float>(bound), gradient.span());
      std::vector<double> expected;
      for (size_t i = 0; i < x.size(); ++i) expected.push_back(dy[i] * OracleSlope(x[i], bound));
      REQUIRE(gradient.Values() == expected);
      REQUIRE(gradient.GuardsAreIntact());
    });
  }
}

TEST_CASE("TheKinkHasSlopeMinusOneAndTheFoldsOfItsNeighboursAreEqual") {
  const std::vector<double> x = {1, 2, 3};  // bound 2: p = 2b at x = 2
  const Guarded<float> input(x, 0);
  Guarded<float> slope({1, 1, 1}, 0);
  FoldBackward<float>(slope.view(), input.view(), 2, slope.span());
  REQUIRE(slope.Values() == std::vector<double>{1, -1, -1});
  Guarded<float> value(3, 0);
  FoldForward<float, float>(input.view(), 2, value.span());
  REQUIRE(value.Values() == std::vector<double>{1, 2, 1});
}

TEST_CASE("FoldReadsFloatAndWritesBFloat16") {
  const std::vector<double> x = {-16000000, 4097, 5, 0, 16000001};
  const Guarded<float> input(x, 1);
  Guarded<BFloat16> output(5, 3);
  FoldForward<float, BFloat16>(input.view(), 4, output.span());
  for (size_t i = 0; i < x.size(); ++i) REQUIRE(output.Values()[i] == OracleFold(x[i], 4));
}

TEST_CASE("NanAndInfinityGiveNanSoThatUnwrittenMemoryShows") {
  const std::vector<double> bad = {std::nan(""), INFINITY, -INFINITY};
  const Guarded<float> input(bad, 0);
  Guarded<float> value(3, 0);
  Guarded<float> slope({1, 1, 1}, 0);
  FoldForward<float, float>(input.view(), 2, value.span());
  FoldBackward<float>(slope.view(), input.view(), 2, slope.span());
  for (int i = 0; i < 3; ++i) {
    REQUIRE(std::isnan(value.Values()[i]));
    REQUIRE(std::isnan(slope.Values()[i]));
  }
}

TEST_CASE("FoldRefusesDifferentSizesAndBoundsOutsideItsRange") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((FoldForward<float, float>(three, 2, four)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH((FoldBackward<float>(three, four, 2, three)), Catch::Contains("same size"));
  for (const float bound : {0.0f, -1.0f, 2097152.0f, NAN}) {
    REQUIRE_THROWS_WITH((FoldForward<float, float>(three, bound, three)), Catch::Contains("[1, 2^20]"));
  }
}

}  // namespace
}  // namespace plumbline::kernels
