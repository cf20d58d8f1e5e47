// SPDX-License-Identifier: Apache-2.0
// The bucket rule of docs/formats.md, on worked examples and exhaustively on small lists of sizes.
#include "optimized/partition/bucket_plan.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using Sizes = std::vector<int64_t>;

std::vector<Sizes> Groups(const BucketPlan& plan) {
  std::vector<Sizes> groups;
  for (const Bucket& bucket : plan.buckets) groups.push_back(bucket.parameters);
  return groups;
}

// Every list of up to four sizes from a few awkward ones.
std::vector<Sizes> SizeLists() {
  const Sizes choices = {1, 2, 31, 32, 33, 97};
  std::vector<Sizes> lists = {{}};
  for (size_t begin = 0, length = 0; length < 4; ++length) {
    const size_t end = lists.size();
    for (; begin < end; ++begin) {
      for (const int64_t choice : choices) {
        Sizes longer = lists[begin];
        longer.push_back(choice);
        lists.push_back(longer);
      }
    }
  }
  return lists;
}

TEST(BucketPlan, WalksInReverseAndSplitsOneElementAboveTheLimit) {
  const Sizes numels = {10, 20, 30};
  EXPECT_EQ(Groups(PlanBuckets(numels, 59, 1)), (std::vector<Sizes>{{2, 1}, {0}}));
  EXPECT_EQ(Groups(PlanBuckets(numels, 60, 1)), (std::vector<Sizes>{{2, 1, 0}}));
  EXPECT_EQ(Groups(PlanBuckets(numels, 50, 1)), (std::vector<Sizes>{{2, 1}, {0}}));
  EXPECT_EQ(Groups(PlanBuckets(numels, 49, 1)), (std::vector<Sizes>{{2}, {1, 0}}));
}

TEST(BucketPlan, AParameterLargerThanTheLimitGetsABucketOfItsOwn) {
  const Sizes numels = {5, 100, 5};
  EXPECT_EQ(Groups(PlanBuckets(numels, 1, 1)), (std::vector<Sizes>{{2}, {1}, {0}}));
  for (const int64_t limit : {99, 100, 101}) {
    EXPECT_EQ(Groups(PlanBuckets(numels, limit, 1)), (std::vector<Sizes>{{2}, {1}, {0}})) << limit;
  }
  EXPECT_EQ(Groups(PlanBuckets(numels, 105, 1)), (std::vector<Sizes>{{2, 1}, {0}}));
}

TEST(BucketPlan, PaddingDoesNotCountTowardsTheLimit) {
  const Sizes numels(64, 1);  // 64 elements, 64 * 32 with padding
  EXPECT_EQ(PlanBuckets(numels, 64, 1).buckets.size(), 1u);
  EXPECT_EQ(PlanBuckets(numels, 64, 1).buckets[0].padded_elems, 64 * 32);
  EXPECT_EQ(PlanBuckets(numels, 63, 1).buckets.size(), 2u);
}

TEST(BucketPlan, CoversEveryElementOnceAlignedForAllSmallListsLimitsAndWorlds) {
  for (const Sizes& numels : SizeLists()) {
    for (const int64_t limit : {1, 32, 96, 97, 98, 1000}) {
      for (int64_t world = 1; world <= 9; ++world) {
        const BucketPlan plan = PlanBuckets(numels, limit, world);
        std::vector<int> owners(plan.total_elems, 0);
        int64_t next_parameter = static_cast<int64_t>(numels.size());
        int64_t flat_end = 0;
        for (const Bucket& bucket : plan.buckets) {
          ASSERT_EQ(bucket.flat_offset, flat_end);
          ASSERT_EQ(bucket.padded_elems % (kAlignmentElems * world), 0);
          ASSERT_FALSE(bucket.parameters.empty());
          flat_end += bucket.padded_elems;
          int64_t used_end = 0;
          for (const int64_t parameter : bucket.parameters) {
            ASSERT_EQ(parameter, --next_parameter);
            const ParameterPlace& place = plan.places[parameter];
            ASSERT_EQ(place.flat_offset, bucket.flat_offset + place.bucket_offset);
            ASSERT_EQ(place.bucket_offset % kAlignmentElems, 0);
            ASSERT_LT(place.bucket_offset - used_end, kAlignmentElems);
            used_end = place.bucket_offset + place.numel;
            for (int64_t i = 0; i < numels[parameter]; ++i) ASSERT_EQ(owners[place.flat_offset + i]++, 0);
          }
          ASSERT_LE(used_end, bucket.padded_elems);
          ASSERT_LT(bucket.padded_elems - used_end, kAlignmentElems * world);
        }
        ASSERT_EQ(next_parameter, 0);
        ASSERT_EQ(flat_end, plan.total_elems);
      }
    }
  }
}

TEST(BucketPlan, GroupsDoNotDependOnTheWorld) {
  for (const Sizes& numels : SizeLists()) {
    for (const int64_t limit : {1, 64, 97}) {
      for (int64_t world = 2; world <= 9; ++world) {
        ASSERT_EQ(Groups(PlanBuckets(numels, limit, world)), Groups(PlanBuckets(numels, limit, 1)));
      }
    }
  }
}

TEST(BucketPlan, ABucketHoldsParametersOfOneSetOnly) {
  const Sizes numels = {10, 20, 30, 40};
  const std::vector<Sizes> sets = {{3, 1}, {}, {0, 2}};
  const BucketPlan plan = PlanBuckets(numels, sets, 1000, 3);
  EXPECT_EQ(Groups(plan), (std::vector<Sizes>{{3, 1}, {2, 0}}));
  EXPECT_EQ(plan.buckets[0].set, 0);
  EXPECT_EQ(plan.buckets[1].set, 2);
  EXPECT_EQ(plan.buckets[1].flat_offset, 96);
  EXPECT_EQ(plan.total_elems, 192);
  EXPECT_EQ(plan.places[0].bucket, 1);
  EXPECT_EQ(plan.places[0].flat_offset, 96 + 32);
  EXPECT_EQ(Groups(PlanBuckets(numels, sets, 59, 3)), (std::vector<Sizes>{{3}, {1}, {2, 0}}));
}

TEST(BucketPlan, IsThatOfTheModelWithoutTheParametersThatAreInNoSet) {
  const Sizes numels = {10, 70, 20, 33, 30};
  const BucketPlan plan = PlanBuckets(numels, std::vector<Sizes>{{0, 2, 4}}, 50, 3);
  const BucketPlan without = PlanBuckets(Sizes{10, 20, 30}, 50, 3);
  EXPECT_EQ(Groups(plan), (std::vector<Sizes>{{4, 2}, {0}}));
  EXPECT_EQ(plan.total_elems, without.total_elems);
  EXPECT_EQ(plan.places[2].flat_offset, without.places[1].flat_offset);
  EXPECT_EQ(plan.places[0].flat_offset, without.places[0].flat_offset);
  EXPECT_EQ(plan.places[1].bucket, kNoBucket);
  EXPECT_EQ(plan.places[3].bucket, kNoBucket);
}

TEST(BucketPlan, HasNoBucketWhereEveryParameterIsInNoSet) {
  const BucketPlan plan = PlanBuckets(Sizes{10, 20}, std::vector<Sizes>{{}}, 50, 3);
  EXPECT_TRUE(plan.buckets.empty());
  EXPECT_EQ(plan.total_elems, 0);
}

TEST(BucketPlan, RefusesParametersThatDoNotExistOrAreInTwoSets) {
  const Sizes numels = {10, 20};
  for (const std::vector<Sizes>& sets :
       {std::vector<Sizes>{{0, 1}, {1}}, std::vector<Sizes>{{0, 1, 2}}, std::vector<Sizes>{{-1, 0, 1}}}) {
    EXPECT_THROW(PlanBuckets(numels, sets, 10, 1), contract::Error);
  }
}

TEST(BucketPlan, RefusesArgumentsBelowOne) {
  const Sizes numels = {3}, empty_parameter = {3, 0};
  EXPECT_THROW(PlanBuckets(numels, 0, 1), contract::Error);
  EXPECT_THROW(PlanBuckets(numels, 1, 0), contract::Error);
  EXPECT_THROW(PlanBuckets(empty_parameter, 1, 1), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
