// SPDX-License-Identifier: Apache-2.0
// Where working weights lie, and when, by the ZeRO stage of each: in shards that are gathered around each use (groups
// of stage 3), or whole on every rank (all else). The model sees the table of addresses and the hooks, the optimizer
// where to write, the trace what is held.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/engine/frozen_weights.h"
#include "optimized/engine/resident_weights.h"
#include "optimized/engine/sharded_weights.h"
#include "optimized/engine/weight_slice.h"
#include "optimized/model/model.h"
#include "optimized/partition/gather_plan.h"
#include "optimized/partition/unit_plan.h"

namespace plumbline::optimized {

class WeightStore final : public UnitHooks {
 public:
  // The first sets of the bucket plan are the groups of the units, in order. All plans outlive the store.
  WeightStore(const WeightInputs& inputs, const UnitPlan& units, const GatherPlan& gathers);

  void BeforeUse(int64_t unit) override { sharded_.BeforeUse(unit); }
  void AfterUse(int64_t unit) override { sharded_.AfterUse(unit); }

  // Everything that this rank holds between steps, frozen weights last. Padding is in none of the slices and stays NaN.
  std::vector<WeightSlice> Held() const;

  // The frozen weights, whole.
  std::vector<WeightSlice> Frozen() const { return frozen_.Held(); }

  // Where the optimizer writes a slice of this rank's shard.
  Buffer Updated(const ShardSlice& slice) const;

  // Before the first micro-batch of a step.
  void BeginStep() { sharded_.BeginStep(); }

  // After the update: whole weights become those that all ranks have written.
  void Publish();

 private:
  ShardedWeights sharded_;
  ResidentBuckets resident_;
  const FrozenWeights frozen_;
};

}  // namespace plumbline::optimized
