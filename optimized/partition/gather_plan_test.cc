// SPDX-License-Identifier: Apache-2.0
// The plan on worked examples, and its promises for all small models, limits and numbers of micro-batches: what is used
// is there, nothing is gathered twice or left over, limits hold, and it is as early as the limits allow.
#include "optimized/partition/gather_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using List = std::vector<int64_t>;
using Lists = std::vector<List>;

// Embedding (groups 3 and 4), two layers (2, 1), head (0 and the tied 4).
const Lists kGroupsOfUnit = {{3, 4}, {2}, {1}, {0, 4}};
const List kElems = {9, 88, 88, 50, 100};
const List kForward = {0, 1, 2, 3};
const List kBackward = {3, 2, 1};

Lists Gathers(const GatherPlan& plan) {
  Lists gathers;
  for (const UnitUse& use : plan.uses) gathers.push_back(use.gather);
  return gathers;
}
Lists Releases(const GatherPlan& plan) {
  Lists releases;
  for (const UnitUse& use : plan.uses) releases.push_back(use.release);
  return releases;
}
List Live(const GatherPlan& plan) {
  List live;
  for (const UnitUse& use : plan.uses) live.push_back(use.live_elems);
  return live;
}
GatherPlan Plan(int64_t accumulation_steps, const GatherLimits& limits) {
  return PlanGathers(UsesOfStep(kForward, kBackward, accumulation_steps), kGroupsOfUnit, kElems, limits);
}

TEST(GatherPlan, WithoutLimitsToSpareEachUseGathersAndReleasesItsOwn) {
  const GatherPlan plan = Plan(1, {0, 0});
  // The head's backward follows its forward at once: nothing is released between them.
  EXPECT_EQ(Gathers(plan), (Lists{{3, 4}, {2}, {1}, {0, 4}, {}, {1}, {2}}));
  EXPECT_EQ(Releases(plan), (Lists{{3, 4}, {2}, {1}, {}, {0, 4}, {1}, {2}}));
  EXPECT_EQ(Live(plan), (List{150, 88, 88, 109, 109, 88, 88}));
}

TEST(GatherPlan, WhereEverythingMayLiveEachGroupIsGatheredOnceAStep) {
  for (const int64_t accumulation_steps : {1, 2, 3}) {
    const GatherPlan plan = Plan(accumulation_steps, {0, 335});
    List count(kElems.size(), 0);
    for (const UnitUse& use : plan.uses) {
      for (const int64_t group : use.gather) ++count[group];
    }
    EXPECT_EQ(count, List(kElems.size(), 1));
    // The positions have no further use where there is no further micro-batch.
    EXPECT_EQ(std::ranges::max(Live(plan)), accumulation_steps == 1 ? 285 : 335);
  }
}

TEST(GatherPlan, TheShortestWaitsAreKeptFirst) {
  // The embedding waits for the head over two layers, and the last layer for its backward over the head, both length 3:
  // the earlier first. The first layer's wait is longer, and there is no room for it.
  const GatherPlan plan = Plan(1, {0, 109 + 88});
  EXPECT_EQ(Gathers(plan), (Lists{{3, 4}, {2}, {1}, {0}, {}, {}, {2}}));
  EXPECT_EQ(Live(plan), (List{150, 188, 188, 197, 197, 88, 88}));
  EXPECT_EQ(Gathers(Plan(1, {0, 109 + 87})), (Lists{{3, 4}, {2}, {1}, {0}, {}, {1}, {2}}));
  EXPECT_EQ(Gathers(Plan(1, {0, 187})), (Lists{{3, 4}, {2}, {1}, {0, 4}, {}, {1}, {2}}));
}

TEST(GatherPlan, PrefetchStopsOneElementShort) {
  const GatherLimits enough{88, 1000}, short_of_it{87, 1000};
  EXPECT_EQ(Plan(1, enough).uses[0].gather, (List{3, 4, 2}));
  EXPECT_EQ(Plan(1, short_of_it).uses[0].gather, (List{3, 4}));
  EXPECT_EQ(Plan(1, {176, 1000}).uses[0].gather, (List{3, 4, 2, 1}));
  EXPECT_EQ(Plan(1, {175, 1000}).uses[0].gather, (List{3, 4, 2}));
}

TEST(GatherPlan, PrefetchDoesNotExceedWhatMayLive) {
  EXPECT_EQ(Plan(1, {1000, 238}).uses[0].gather, (List{3, 4, 2}));
  EXPECT_EQ(Plan(1, {1000, 237}).uses[0].gather, (List{3, 4}));
}

TEST(GatherPlan, RefusesNegativeLimits) {
  EXPECT_THROW(Plan(1, {-1, 0}), contract::Error);
  EXPECT_THROW(Plan(1, {0, -1}), contract::Error);
}

// Replays the plan as the executor would and checks every promise.
void CheckPlan(const List& uses, const Lists& groups_of_unit, const List& elems, const GatherLimits& limits) {
  const GatherPlan plan = PlanGathers(uses, groups_of_unit, elems, limits);
  ASSERT_EQ(plan.uses.size(), uses.size());
  std::set<int64_t> live, ahead;
  const auto sum = [&](const std::set<int64_t>& groups) {
    return std::accumulate(groups.begin(), groups.end(), int64_t{0},
                           [&](int64_t s, int64_t g) { return s + elems[g]; });
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    const UnitUse& use = plan.uses[i];
    ASSERT_EQ(use.unit, uses[i]);
    const List& needed = groups_of_unit[use.unit];
    for (const int64_t group : use.gather) {
      ASSERT_TRUE(live.insert(group).second) << "gathered while gathered";
      ahead.insert(group);
    }
    int64_t needed_elems = 0;
    for (const int64_t group : needed) {
      ASSERT_TRUE(live.contains(group)) << "used without being gathered";
      ahead.erase(group);
      needed_elems += elems[group];
    }
    ASSERT_EQ(use.live_elems, sum(live));
    ASSERT_LE(sum(live), std::max(limits.max_live_elems, needed_elems));
    ASSERT_LE(sum(ahead), limits.prefetch_elems);
    for (const int64_t group : use.release) {
      ASSERT_FALSE(ahead.contains(group)) << "gathered for nothing";
      ASSERT_EQ(live.erase(group), 1u) << "released without being gathered";
    }
  }
  ASSERT_TRUE(live.empty()) << "left over";
}

TEST(GatherPlan, KeepsItsPromisesForAllSmallOrdersAndLimits) {
  const Lists groups_of_unit = {{0, 2}, {1}, {2}};
  const List elems = {3, 4, 2};
  // All orders of up to seven uses of three units.
  for (int length = 0; length <= 7; ++length) {
    int count = 1;
    for (int i = 0; i < length; ++i) count *= 3;
    for (int code = 0; code < count; ++code) {
      List uses;
      for (int i = 0, rest = code; i < length; ++i, rest /= 3) uses.push_back(rest % 3);
      for (const int64_t prefetch : {0, 2, 4, 5, 9}) {
        for (const int64_t max_live : {0, 4, 5, 6, 7, 8, 9}) {
          CheckPlan(uses, groups_of_unit, elems, {prefetch, max_live});
        }
      }
    }
  }
}

TEST(GatherPlan, KeepsItsPromisesForModelsOfManyLayers) {
  for (int64_t layers = 0; layers <= 5; ++layers) {
    Lists groups_of_unit = {{layers + 1, layers + 2}};
    for (int64_t layer = 0; layer < layers; ++layer) groups_of_unit.push_back({layers - layer});
    groups_of_unit.push_back({0, layers + 2});
    List elems(layers + 3, 7), forward(layers + 2), backward(layers + 1);
    elems[0] = 1;
    elems.back() = 11;
    std::iota(forward.begin(), forward.end(), 0);
    std::iota(backward.rbegin(), backward.rend(), 1);
    for (const int64_t accumulation_steps : {1, 2, 3}) {
      for (int64_t prefetch = 0; prefetch <= 30; prefetch += 3) {
        for (int64_t max_live = 0; max_live <= 60; ++max_live) {
          CheckPlan(UsesOfStep(forward, backward, accumulation_steps), groups_of_unit, elems, {prefetch, max_live});
        }
      }
    }
  }
}

TEST(GatherPlan, PrefetchChangesWhenButNeverHowOften) {
  for (int64_t max_live = 0; max_live <= 340; ++max_live) {
    List expected;
    for (const int64_t prefetch : {0, 1, 9, 50, 88, 100, 176, 1000}) {
      List count(kElems.size(), 0);
      for (const UnitUse& use : Plan(2, {prefetch, max_live}).uses) {
        for (const int64_t group : use.gather) ++count[group];
      }
      if (expected.empty()) expected = count;
      ASSERT_EQ(count, expected) << "prefetch " << prefetch << ", live " << max_live;
    }
  }
}

}  // namespace
}  // namespace plumbline::optimized
