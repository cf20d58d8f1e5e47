// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/unit_formula.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using Units = std::vector<size_t>;

TEST(UnitsOf, ExactAreEmbeddingLayersAndATiedHead) {
  contract::ModelSpec model = ExampleCase(1).model;
  model.exact().layers = 2;
  const ModelUnits units = UnitsOf(model);
  EXPECT_EQ(units.reads, (std::vector<Units>{{0, 1}, {2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13}, {0}}));
  EXPECT_EQ(units.uses, (Units{0, 1, 2, 3, 3, 2, 1}));
}

TEST(UnitsOf, ExactUseEachUnitTwiceButTheEmbeddingOnce) {
  for (int64_t layers : {1, 3, 7}) {
    contract::ModelSpec model = ExampleCase(1).model;
    model.exact().layers = layers;
    const ModelUnits units = UnitsOf(model);
    EXPECT_EQ(units.uses.size(), static_cast<size_t>(2 * layers + 3));
    for (size_t unit = 0; unit < units.reads.size(); ++unit) {
      EXPECT_EQ(std::count(units.uses.begin(), units.uses.end(), unit), unit == 0 ? 1 : 2) << unit;
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
