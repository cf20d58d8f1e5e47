// SPDX-License-Identifier: Apache-2.0
// Gathered weights: right while they are in use, out of reach otherwise, NaN once released, and refused out of order.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "conformance/contract/error.h"
#include "optimized/backend/cpu_backend.h"
#include "optimized/comm/thread_communicator.h"
#include "optimized/engine/weight_store.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

// Never gives memory back, so that what a release left in it can be read.
class KeepingBackend final : public Backend {
 public:
  Storage Allocate(int64_t size_bytes, MemoryCategory category) override {
    kept_.push_back(inner_->Allocate(size_bytes, category));
    return Storage(kept_.back().data(), size_bytes, [](std::byte*) {});
  }
  void Poison(std::byte* data, int64_t size_bytes) override { inner_->Poison(data, size_bytes); }
  void MatMul(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) override {
    inner_->MatMul(a, b, c, mode);
  }

 private:
  const std::unique_ptr<Backend> inner_ = MakeCpuBackend();
  std::deque<Storage> kept_;
};

// One rank of one: two units that share a tied weight (parameter 0), and a persistent parameter (1).
struct Fixture {
  explicit Fixture(const GatherLimits& limits)
      : stages(PlanStages(std::vector<std::vector<int64_t>>{{0, 1}, {2}, {0}}, numels, std::vector<int64_t>(3, 3), 10)),
        units(stages.units),
        buckets(PlanBuckets(numels, stages.sets, 1000, 1)),
        staged(StageBuckets(stages, buckets)),
        shard(PlanShard(buckets, 1, 0)),
        gathers(PlanGathers(std::vector<int64_t>{0, 1, 2}, units.groups_of_unit, units.group_elems, limits)),
        ranks(MakeThreadCommunicators(1, Progress::kLastArriver)),
        table(numels.size(), nullptr),
        weights({buckets, staged, shard, frozen, DType::kF32, backend, *ranks[0], std::chrono::seconds(20), table},
                units, gathers) {
    for (const WeightSlice& slice : weights.Held()) {
      for (int64_t i = 0; i < slice.values.elems; ++i) {
        static_cast<float*>(slice.values.data)[i] = Value(slice.parameter, slice.begin + i);
      }
    }
  }

  static float Value(int64_t parameter, int64_t i) { return static_cast<float>(1000 * parameter + i); }

  const float* At(int64_t parameter) const { return static_cast<const float*>(table[parameter]); }

  void ExpectValues(int64_t parameter) const {
    for (int64_t i = 0; i < numels[parameter]; ++i) ASSERT_EQ(At(parameter)[i], Value(parameter, i));
  }

  const std::vector<int64_t> numels = {40, 5, 33};
  KeepingBackend backend;
  const StagePlan stages;
  const UnitPlan& units;
  BucketPlan buckets;
  const StagedBuckets staged;
  ShardPlan shard;
  const FrozenPlan frozen;
  GatherPlan gathers;
  std::vector<std::unique_ptr<Communicator>> ranks;
  std::vector<void*> table;
  WeightStore weights;
};

TEST(ShardedWeights, AreRightInUseOutOfReachOtherwiseAndNanOnceReleased) {
  Fixture f({0, 0});
  f.weights.BeginStep();
  EXPECT_EQ(f.At(0), nullptr);
  f.ExpectValues(1);  // persistent
  f.weights.BeforeUse(0);
  f.ExpectValues(0);
  EXPECT_EQ(f.At(2), nullptr);
  EXPECT_TRUE(std::isnan(f.At(0)[40])) << "padding is gathered as it is";
  const float* released = f.At(0);
  f.weights.AfterUse(0);
  EXPECT_EQ(f.At(0), nullptr);
  for (int64_t i = 0; i < 40; ++i) ASSERT_TRUE(std::isnan(released[i]));
  f.ExpectValues(1);
}

TEST(ShardedWeights, ATiedWeightThatStaysIsNotReachableBetweenItsUses) {
  Fixture f({0, 73});
  f.weights.BeginStep();
  f.weights.BeforeUse(0);
  const float* kept = f.At(0);
  f.weights.AfterUse(0);
  f.weights.BeforeUse(1);
  EXPECT_EQ(f.At(0), nullptr);
  EXPECT_EQ(kept[39], Fixture::Value(0, 39)) << "it is not released";
  f.weights.AfterUse(1);
  f.weights.BeforeUse(2);
  EXPECT_EQ(f.At(0), kept);
  f.ExpectValues(0);
  f.weights.AfterUse(2);
  EXPECT_TRUE(std::isnan(kept[39]));
  f.weights.Publish();
}

TEST(ShardedWeights, RefusesUsesOutOfOrderTooManyAndTooFew) {
  Fixture f({0, 0});
  EXPECT_THROW(f.weights.BeforeUse(0), contract::Error) << "no step has begun";
  f.weights.BeginStep();
  EXPECT_THROW(f.weights.BeforeUse(1), contract::Error);
  f.weights.BeforeUse(0);
  EXPECT_THROW(f.weights.AfterUse(1), contract::Error);
  f.weights.AfterUse(0);
  EXPECT_THROW(f.weights.Publish(), contract::Error);
  for (const int64_t unit : {1, 2}) {
    f.weights.BeforeUse(unit);
    f.weights.AfterUse(unit);
  }
  EXPECT_THROW(f.weights.BeforeUse(0), contract::Error);
  f.weights.Publish();
}

}  // namespace
}  // namespace plumbline::optimized
