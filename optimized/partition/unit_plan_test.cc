// SPDX-License-Identifier: Apache-2.0
// Groups: tied weights apart, small ones persistent, and every parameter in exactly one place.
#include "optimized/partition/unit_plan.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using Lists = std::vector<std::vector<int64_t>>;
using List = std::vector<int64_t>;

// Embedding and positions, two layers of a matrix and a bias, and a head that reads a norm and the embedding again.
const Lists kUnits = {{0, 1}, {2, 3}, {4, 5}, {6, 0}};
const List kNumels = {100, 50, 80, 8, 80, 8, 9};

TEST(UnitPlan, ATiedWeightIsAGroupOfItsOwnInBothUnits) {
  const UnitPlan plan = PlanUnits(kUnits, kNumels, 0);
  EXPECT_EQ(plan.groups, (Lists{{6}, {4, 5}, {2, 3}, {1}, {0}}));
  EXPECT_EQ(plan.group_elems, (List{9, 88, 88, 50, 100}));
  EXPECT_EQ(plan.groups_of_unit, (Lists{{3, 4}, {2}, {1}, {0, 4}}));
  EXPECT_TRUE(plan.persistent.empty());
}

TEST(UnitPlan, ParametersBelowTheThresholdPersistAndThoseAtItDoNot) {
  const UnitPlan plan = PlanUnits(kUnits, kNumels, 9);
  EXPECT_EQ(plan.persistent, (List{3, 5}));
  EXPECT_EQ(plan.groups, (Lists{{6}, {4}, {2}, {1}, {0}}));
  EXPECT_EQ(PlanUnits(kUnits, kNumels, 10).persistent, (List{3, 5, 6}));
  EXPECT_EQ(PlanUnits(kUnits, kNumels, 10).groups_of_unit[3], (List{3}));
}

TEST(UnitPlan, FrozenParametersAreNeitherPersistentNorInAGroup) {
  const UnitPlan plan = PlanUnits(kUnits, kNumels, 9, List{0, 3, 4});
  EXPECT_EQ(plan.persistent, (List{5}));
  EXPECT_EQ(plan.groups, (Lists{{6}, {2}, {1}}));
  EXPECT_EQ(plan.group_elems, (List{9, 80, 50}));
  EXPECT_EQ(plan.groups_of_unit, (Lists{{2}, {1}, {}, {0}}));
}

TEST(UnitPlan, AHighThresholdLeavesNoGroup) {
  const UnitPlan plan = PlanUnits(kUnits, kNumels, 101);
  EXPECT_TRUE(plan.groups.empty());
  EXPECT_EQ(plan.persistent.size(), kNumels.size());
  for (const List& groups : plan.groups_of_unit) EXPECT_TRUE(groups.empty());
}

TEST(UnitPlan, EveryParameterIsInOneGroupOrPersistentForAllSmallAssignments) {
  // Three units, four parameters, each read by any non-empty set of units: 7^4 models.
  const List numels = {3, 1, 2, 5};
  for (int code = 0; code < 7 * 7 * 7 * 7; ++code) {
    Lists units(3);
    std::vector<int> readers;
    for (int parameter = 0, rest = code; parameter < 4; ++parameter, rest /= 7) {
      readers.push_back(rest % 7 + 1);
      for (int unit = 0; unit < 3; ++unit) {
        if (readers.back() >> unit & 1) units[unit].push_back(parameter);
      }
    }
    for (int64_t threshold = 0; threshold <= 6; ++threshold) {
      const UnitPlan plan = PlanUnits(units, numels, threshold);
      List seen(numels.size(), 0);
      for (const int64_t parameter : plan.persistent) {
        ++seen[parameter];
        ASSERT_LT(numels[parameter], threshold);
      }
      for (size_t group = 0; group < plan.groups.size(); ++group) {
        int64_t elems = 0;
        for (const int64_t parameter : plan.groups[group]) {
          ++seen[parameter];
          elems += numels[parameter];
          ASSERT_GE(numels[parameter], threshold);
          for (int unit = 0; unit < 3; ++unit) {
            const List& groups = plan.groups_of_unit[unit];
            const bool is_listed = std::find(groups.begin(), groups.end(), static_cast<int64_t>(group)) != groups.end();
            ASSERT_EQ(is_listed, (readers[parameter] >> unit & 1) == 1);
          }
        }
        ASSERT_EQ(plan.group_elems[group], elems);
      }
      ASSERT_EQ(seen, List(numels.size(), 1));
    }
  }
}

TEST(UnitPlan, RefusesParametersThatNobodyReadsAndThatDoNotExist) {
  EXPECT_THROW(PlanUnits(Lists{{0}}, List{1, 1}, 0), contract::Error);
  EXPECT_THROW(PlanUnits(Lists{{0, 1}}, List{1}, 0), contract::Error);
  EXPECT_THROW(PlanUnits(Lists{{-1, 0}}, List{1}, 0), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
