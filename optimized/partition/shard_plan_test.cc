// SPDX-License-Identifier: Apache-2.0
// All shards together hold every element of every parameter exactly once, and each knows where its elements lie.
#include "optimized/partition/shard_plan.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using Sizes = std::vector<int64_t>;

void CheckCover(const Sizes& numels, int64_t bucket_elems, int64_t world) {
  const BucketPlan plan = PlanBuckets(numels, bucket_elems, world);
  std::vector<Sizes> holders(numels.size());
  for (size_t p = 0; p < numels.size(); ++p) holders[p].assign(numels[p], -1);
  std::vector<int> flat_cover(plan.total_elems, 0);
  for (int64_t rank = 0; rank < world; ++rank) {
    const ShardPlan shard = PlanShard(plan, world, rank);
    ASSERT_EQ(shard.total_elems * world, plan.total_elems);
    ASSERT_EQ(shard.buckets.size(), plan.buckets.size());
    for (size_t b = 0; b < shard.buckets.size(); ++b) {
      ASSERT_EQ(shard.buckets[b].elems * world, plan.buckets[b].padded_elems);
      ASSERT_EQ(shard.buckets[b].flat_offset, plan.buckets[b].flat_offset + rank * shard.buckets[b].elems);
      ASSERT_EQ(shard.buckets[b].shard_offset % kAlignmentElems, 0);
      for (int64_t i = 0; i < shard.buckets[b].elems; ++i) ASSERT_EQ(flat_cover[shard.buckets[b].flat_offset + i]++, 0);
    }
    for (const ShardSlice& slice : shard.slices) {
      ASSERT_LT(slice.begin, slice.end);
      ASSERT_EQ(slice.flat_offset, plan.places[slice.parameter].flat_offset + slice.begin);
      const BucketShard& part = shard.buckets[plan.places[slice.parameter].bucket];
      ASSERT_EQ(slice.flat_offset - part.flat_offset, slice.shard_offset - part.shard_offset);
      ASSERT_GE(slice.flat_offset, part.flat_offset);
      ASSERT_LE(slice.flat_offset + slice.elems(), part.flat_offset + part.elems);
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        ASSERT_EQ(holders[slice.parameter].at(i), -1) << "element held twice";
        holders[slice.parameter][i] = rank;
      }
    }
  }
  for (const Sizes& parameter : holders) {
    for (const int64_t holder : parameter) ASSERT_NE(holder, -1) << "element held by nobody";
  }
}

TEST(ShardPlan, CoversEveryElementOnceForPrimeSizesWorldsOneToNineAndBucketsAroundNumel) {
  for (const Sizes& numels : {Sizes{1}, Sizes{2, 3}, Sizes{97}, Sizes{31, 1, 257},
                              Sizes{228, 96, 144, 48, 48, 144, 240, 241}, Sizes{1009, 5, 1013}}) {
    int64_t total = 0;
    for (const int64_t numel : numels) total += numel;
    Sizes limits = {1, total - 1, total, total + 1, 500000000};
    for (const int64_t numel : numels) limits.insert(limits.end(), {numel - 1, numel, numel + 1});
    for (const int64_t limit : limits) {
      if (limit < 1) continue;
      for (int64_t world = 1; world <= 9; ++world) CheckCover(numels, limit, world);
    }
  }
}

TEST(ShardPlan, AParameterSmallerThanTheWorldLiesOnOneRankAndTheOthersHoldPadding) {
  const BucketPlan plan = PlanBuckets(Sizes{2}, 1000, 8);
  EXPECT_EQ(plan.total_elems, 32 * 8);
  EXPECT_EQ(PlanShard(plan, 8, 0).slices.size(), 1u);
  for (int64_t rank = 1; rank < 8; ++rank) EXPECT_TRUE(PlanShard(plan, 8, rank).slices.empty());
}

TEST(ShardPlan, AParameterThatSpansPartsIsCutWhereThePartsMeet) {
  const BucketPlan plan = PlanBuckets(Sizes{100}, 1000, 2);  // padded to 128: parts of 64
  const ShardPlan second = PlanShard(plan, 2, 1);
  ASSERT_EQ(second.slices.size(), 1u);
  EXPECT_EQ(second.slices[0].begin, 64);
  EXPECT_EQ(second.slices[0].end, 100);
  EXPECT_EQ(second.slices[0].flat_offset, 64);
  EXPECT_EQ(second.slices[0].shard_offset, 0);
}

TEST(ShardPlan, DegreeOneHoldsEverythingAtItsFlatOffset) {
  const BucketPlan plan = PlanBuckets(Sizes{31, 33, 5}, 40, 3);
  const ShardPlan whole = PlanShard(plan, 1, 0);
  ASSERT_EQ(whole.slices.size(), 3u);
  for (const ShardSlice& slice : whole.slices) {
    EXPECT_EQ(slice.begin, 0);
    EXPECT_EQ(slice.elems(), plan.places[slice.parameter].numel);
    EXPECT_EQ(slice.shard_offset, slice.flat_offset);
  }
}

TEST(ShardPlan, WhereEachBucketHasItsDegreeWhatIsWholeIsCountedOnTheFirstRankOnly) {
  const BucketPlan plan = PlanBuckets(Sizes{100, 100}, 1, 2);  // two buckets of 128
  const ShardPlan second = PlanShard(plan, Sizes{2, 1}, 1);
  ASSERT_EQ(second.slices.size(), 2u);
  EXPECT_EQ(second.slices[0].parameter, 1);
  EXPECT_EQ(second.slices[0].begin, 64);
  EXPECT_TRUE(second.slices[0].is_first_copy);
  EXPECT_EQ(second.slices[1].parameter, 0);
  EXPECT_EQ(second.slices[1].elems(), 100);
  EXPECT_EQ(second.slices[1].flat_offset, 128);
  EXPECT_EQ(second.slices[1].shard_offset, 64);
  EXPECT_FALSE(second.slices[1].is_first_copy);
  EXPECT_EQ(second.total_elems, 64 + 128);
  for (const ShardSlice& slice : PlanShard(plan, Sizes{2, 1}, 0).slices) EXPECT_TRUE(slice.is_first_copy);
}

TEST(ShardPlan, RefusesADegreeThatIsMissingOrThatTheRankIsNotBelow) {
  const BucketPlan plan = PlanBuckets(Sizes{5, 5}, 1, 2);
  EXPECT_THROW(PlanShard(plan, Sizes{2}, 0), contract::Error);
  EXPECT_THROW(PlanShard(plan, Sizes{1, 2}, 2), contract::Error);
  EXPECT_THROW(PlanShard(plan, Sizes{1, 1}, -1), contract::Error);
  EXPECT_THROW(PlanShard(plan, Sizes{1, 0}, 0), contract::Error);
}

TEST(ShardPlan, RefusesShardsThatDoNotExistAndDegreesThatDoNotDivide) {
  const BucketPlan plan = PlanBuckets(Sizes{5}, 10, 1);
  EXPECT_THROW(PlanShard(plan, 0, 0), contract::Error);
  EXPECT_THROW(PlanShard(plan, 2, 2), contract::Error);
  EXPECT_THROW(PlanShard(plan, 2, -1), contract::Error);
  EXPECT_THROW(PlanShard(plan, 7, 0), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
