// SPDX-License-Identifier: Apache-2.0
// Every combination of stages of one to four layers and of all else, for one to four ranks: who holds each element, and
// which buckets are treated how.
#include "optimized/partition/stage_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "conformance/contract/error.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {
namespace {

using List = std::vector<int64_t>;
using Lists = std::vector<List>;

constexpr int64_t kStages = 4;
constexpr int64_t kFrozenParameter = 1;

// A tied embedding (0), a frozen parameter (1), for each layer a matrix and a bias, and a norm (the last one).
struct Model {
  // `code` in digits of base 4: the stage of all else, then of each layer.
  Model(int64_t layers, int64_t code) : numels{40, 50}, stages{code % kStages, kFrozen}, units{{0, 1}} {
    for (int64_t layer = 0; layer < layers; ++layer) {
      code /= kStages;
      const auto first = static_cast<int64_t>(numels.size());
      units.push_back({first, first + 1});
      numels.insert(numels.end(), {33 + layer, 7});
      stages.insert(stages.end(), 2, code % kStages);
    }
    units.push_back({static_cast<int64_t>(numels.size()), 0});
    numels.push_back(9);
    stages.push_back(stages[0]);
  }

  List numels, stages;
  Lists units;
};

void ForAllModels(const std::function<void(const Model&, int64_t threshold)>& visit) {
  for (int64_t layers = 1; layers <= 4; ++layers) {
    const int64_t num_codes = int64_t{1} << (2 * (layers + 1));
    for (int64_t code = 0; code < num_codes; ++code) {
      for (const int64_t threshold : {0, 10, 100}) visit(Model(layers, code), threshold);
    }
  }
}

TEST(StagePlan, PutsEachTrainedParameterIntoOneSetOfItsStageInDescendingOrder) {
  ForAllModels([](const Model& model, int64_t threshold) {
    const StagePlan plan = PlanStages(model.units, model.numels, model.stages, threshold);
    ASSERT_EQ(plan.sets.size(), plan.units.groups.size() + 4);
    ASSERT_EQ(plan.stage_of_set.size(), plan.sets.size());
    List times(model.numels.size(), 0);
    for (size_t set = 0; set < plan.sets.size(); ++set) {
      if (set > 0) {
        ASSERT_LE(plan.stage_of_set[set], plan.stage_of_set[set - 1]);
      }
      const bool is_group = set < plan.units.groups.size(), is_persistent = set == plan.units.groups.size();
      for (const int64_t parameter : plan.sets[set]) {
        ++times[parameter];
        ASSERT_EQ(model.stages[parameter], plan.stage_of_set[set]);
        ASSERT_EQ(is_group, model.stages[parameter] == 3 && model.numels[parameter] >= threshold);
        ASSERT_EQ(is_persistent, model.stages[parameter] == 3 && model.numels[parameter] < threshold);
      }
    }
    for (size_t parameter = 0; parameter < times.size(); ++parameter) {
      ASSERT_EQ(times[parameter], parameter == kFrozenParameter ? 0 : 1);
    }
  });
}

TEST(StagePlan, AUnitReadsGroupsOfItsOwnParametersOfStageThreeOnly) {
  ForAllModels([](const Model& model, int64_t threshold) {
    const StagePlan plan = PlanStages(model.units, model.numels, model.stages, threshold);
    ASSERT_EQ(plan.units.groups_of_unit.size(), model.units.size());
    for (size_t unit = 0; unit < model.units.size(); ++unit) {
      std::set<int64_t> expected, read;
      for (const int64_t parameter : model.units[unit]) {
        if (model.stages[parameter] == 3 && model.numels[parameter] >= threshold) expected.insert(parameter);
      }
      for (const int64_t group : plan.units.groups_of_unit[unit]) {
        read.insert(plan.units.groups[group].begin(), plan.units.groups[group].end());
      }
      ASSERT_EQ(read, expected);
    }
  });
}

TEST(StagePlan, NumbersOfBucketsTellTheStageOfEveryOne) {
  ForAllModels([](const Model& model, int64_t threshold) {
    const StagePlan plan = PlanStages(model.units, model.numels, model.stages, threshold);
    for (const int64_t bucket_elems : {1, 45, 1000}) {
      const BucketPlan buckets = PlanBuckets(model.numels, plan.sets, bucket_elems, 3);
      const StagedBuckets staged = StageBuckets(plan, buckets);
      ASSERT_EQ(staged.num_buckets, static_cast<int64_t>(buckets.buckets.size()));
      const List degrees = staged.Degrees(3);
      for (int64_t bucket = 0; bucket < staged.num_buckets; ++bucket) {
        for (const int64_t parameter : buckets.buckets[bucket].parameters) {
          const int64_t stage = model.stages[parameter];
          ASSERT_EQ(bucket < staged.num_of_groups, stage == 3 && model.numels[parameter] >= threshold);
          ASSERT_EQ(bucket < staged.num_reduced_each_time, stage >= 2);
          ASSERT_EQ(bucket < staged.num_sharded, stage >= 1);
          ASSERT_EQ(degrees[bucket], stage >= 1 ? 3 : 1);
        }
      }
    }
  });
}

// What all ranks hold of a model in one layout.
struct Holders {
  explicit Holders(const Model& model) {
    for (const int64_t numel : model.numels) {
      copies.emplace_back(numel, 0);
      first_copies.emplace_back(numel, 0);
    }
  }

  void Add(const ShardPlan& shard) {
    for (const ShardSlice& slice : shard.slices) {
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        ++copies[slice.parameter][i];
        if (slice.is_first_copy) ++first_copies[slice.parameter][i];
      }
    }
  }

  Lists copies, first_copies;
};

// Parts lie one after the other, and slices where their bucket's part does.
void CheckOffsets(const BucketPlan& buckets, const ShardPlan& shard, const List& degrees) {
  int64_t end = 0;
  for (size_t bucket = 0; bucket < degrees.size(); ++bucket) {
    ASSERT_EQ(shard.buckets[bucket].shard_offset, end);
    ASSERT_EQ(shard.buckets[bucket].elems * degrees[bucket], buckets.buckets[bucket].padded_elems);
    end += shard.buckets[bucket].elems;
  }
  ASSERT_EQ(shard.total_elems, end);
  for (const ShardSlice& slice : shard.slices) {
    const ParameterPlace& place = buckets.places[slice.parameter];
    const BucketShard& part = shard.buckets[place.bucket];
    ASSERT_EQ(slice.flat_offset, place.flat_offset + slice.begin);
    ASSERT_EQ(slice.flat_offset - part.flat_offset, slice.shard_offset - part.shard_offset);
    ASSERT_LE(slice.shard_offset + slice.elems(), part.shard_offset + part.elems);
  }
}

TEST(StagePlan, EveryElementIsOnOneRankWhereItsStageShardsAndElseOnAllAndCountedOnce) {
  ForAllModels([](const Model& model, int64_t threshold) {
    const StagePlan plan = PlanStages(model.units, model.numels, model.stages, threshold);
    for (const int64_t bucket_elems : {1, 45, 1000}) {
      for (int64_t world = 1; world <= 4; ++world) {
        const BucketPlan buckets = PlanBuckets(model.numels, plan.sets, bucket_elems, world);
        const List degrees = StageBuckets(plan, buckets).Degrees(world);
        Holders holders(model);
        for (int64_t rank = 0; rank < world; ++rank) {
          const ShardPlan shard = PlanShard(buckets, degrees, rank);
          ASSERT_NO_FATAL_FAILURE(CheckOffsets(buckets, shard, degrees));
          holders.Add(shard);
        }
        for (size_t parameter = 0; parameter < model.numels.size(); ++parameter) {
          const int64_t stage = model.stages[parameter];
          const int64_t copies = stage == kFrozen ? 0 : stage == 0 ? world : 1;
          ASSERT_EQ(holders.copies[parameter], List(model.numels[parameter], copies));
          ASSERT_EQ(holders.first_copies[parameter], List(model.numels[parameter], stage == kFrozen ? 0 : 1));
        }
      }
    }
  });
}

TEST(StagePlan, RefusesStagesThatDoNotExist) {
  const Model model(1, 0);
  for (const int64_t stage : {-2, 4}) {
    List stages = model.stages;
    stages[2] = stage;
    EXPECT_THROW(PlanStages(model.units, model.numels, stages, 0), contract::Error);
  }
}

}  // namespace
}  // namespace plumbline::optimized
