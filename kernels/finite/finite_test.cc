// SPDX-License-Identifier: Apache-2.0
// Every kind of value that is not finite is found at every place of every size and offset; nothing else is.
#include "kernels/finite/finite.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/testing/reals.h"

namespace plumbline::kernels {
namespace {

using testing::Guarded;

TEMPLATE_TEST_CASE("NanAndInfinityAreFoundWhereverTheyAre", "", float, BFloat16) {
  testing::ForEachPlacement([&](int64_t size, int64_t offset) {
    Guarded<TestType> x(std::vector<double>(size, 3.3e38), offset);
    REQUIRE(AllFinite<TestType>(x.view()));
    if (offset > 2) return;
    for (int64_t place = 0; place < size; ++place) {
      for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
        const TestType before = x.span()[place];
        x.span()[place] = FromFloat<TestType>(bad);
        REQUIRE(!AllFinite<TestType>(x.view()));
        x.span()[place] = before;
      }
    }
  });
}

TEST_CASE("ZerosSubnormalsAndTheLargestNumbersAreFinite") {
  const float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {0.0f, -0.0f, smallest, -smallest, largest, -largest};
  REQUIRE(AllFinite<float>(x));
  const std::vector<float> signalling = {std::numeric_limits<float>::signaling_NaN()};
  REQUIRE(!AllFinite<float>(signalling));
}

}  // namespace
}  // namespace plumbline::kernels
