// SPDX-License-Identifier: Apache-2.0
// Frozen weights lie apart from each other, aligned, in the space that docs/zero3.md gives them.
#include "optimized/partition/frozen_plan.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using List = std::vector<int64_t>;

TEST(FrozenPlan, RoundsEachParameterUpToTheAlignment) {
  const FrozenPlan plan = PlanFrozen(List{1, 31, 32, 33, 97}, List{0, 2, 3, 4});
  EXPECT_EQ(plan.places, (std::vector<FrozenPlace>{{0, 0, 1}, {2, 32, 32}, {3, 64, 33}, {4, 128, 97}}));
  EXPECT_EQ(plan.total_elems, 128 + 128);
}

TEST(FrozenPlan, IsEmptyWhereNothingIsFrozen) {
  EXPECT_TRUE(PlanFrozen(List{3, 5}, {}).places.empty());
  EXPECT_EQ(PlanFrozen(List{3, 5}, {}).total_elems, 0);
}

TEST(FrozenPlan, RefusesIndicesThatDoNotExistOrAscend) {
  for (const List& frozen : {List{2}, List{-1}, List{1, 0}, List{1, 1}}) {
    EXPECT_THROW(PlanFrozen(List{3, 5}, frozen), contract::Error);
  }
}

}  // namespace
}  // namespace plumbline::optimized
