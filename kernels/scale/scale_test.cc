// SPDX-License-Identifier: Apache-2.0
// Products at every size and offset, in place, and of special values.
#include "kernels/scale/scale.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;
using testing::Reals;

template <typename T>
double Rounded(double value) {
  return ToFloat(FromFloat<T>(static_cast<float>(value)));
}

TEMPLATE_TEST_CASE("ScaleIsTheRoundedProductAtEverySizeAndOffset", "", float, BFloat16) {
  for (const float factor : {0.0f, 1.0f, -0.3f, 1e-10f, 1e20f}) {
    testing::ForEachPlacement([&](int64_t size, int64_t offset) {
      const std::vector<double> x = Reals(3).Vector<TestType>(size, -5, 5);
      std::vector<double> expected;
      for (const double value : x) expected.push_back(Rounded<TestType>(double{factor} * value));
      Guarded<TestType> y(size, (offset + 1) % 17), in_place(x, offset);
      Scale<TestType>(factor, in_place.view(), y.span());
      Scale<TestType>(factor, in_place.view(), in_place.span());
      REQUIRE((y.Values() == expected && in_place.Values() == expected));
      REQUIRE((y.GuardsAreIntact() && in_place.GuardsAreIntact()));
    });
  }
}

TEST_CASE("ScaleEachIsTheRoundedProductAtEverySizeAndOffset") {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    const std::vector<double> x = Reals(3).Vector<float>(size, -5, 5), factors = Reals(4).Vector<float>(size, 0, 1);
    std::vector<double> expected;
    for (int64_t i = 0; i < size; ++i) expected.push_back(Rounded<float>(factors[i] * x[i]));
    Guarded<float> y(size, (offset + 1) % 17), in_place(x, offset);
    const Guarded<float> each(factors, (offset + 2) % 17);
    ScaleEach(each.view(), in_place.view(), y.span());
    ScaleEach(each.view(), in_place.view(), in_place.span());
    REQUIRE((y.Values() == expected && in_place.Values() == expected));
    REQUIRE((y.GuardsAreIntact() && in_place.GuardsAreIntact()));
  });
}

TEST_CASE("ScaleOfSpecialValues") {
  std::vector<float> x = {NAN, INFINITY, 1e-40f, 3e38f}, y(4);
  Scale<float>(2, x, y);
  REQUIRE((std::isnan(y[0]) && y[1] == INFINITY && y[2] == 2 * x[2] && y[3] == INFINITY));
  Scale<float>(0, x, y);
  REQUIRE((std::isnan(y[0]) && std::isnan(y[1]) && y[2] == 0 && y[3] == 0));
}

TEST_CASE("ScaleRefusesDifferentSizes") {
  std::vector<float> three(3), four(4);
  REQUIRE_THROWS_WITH((Scale<float>(1, three, four)), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(ScaleEach(three, four, four), Catch::Contains("same size"));
  REQUIRE_THROWS_WITH(ScaleEach(four, three, four), Catch::Contains("same size"));
}

}  // namespace
}  // namespace plumbline::kernels
