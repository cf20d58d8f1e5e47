// SPDX-License-Identifier: Apache-2.0
// Working weights of the groups of ZeRO 3, and the executor of a plan of gathers. It decides nothing: what to gather
// before a use and what to release after it is in the plan. Memory of a gathered bucket exists from the posting of its
// all-gather to its release, and is poisoned before it is freed, so that a use after the release shows.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/weight_slice.h"
#include "optimized/partition/gather_plan.h"
#include "optimized/partition/unit_plan.h"

namespace plumbline::optimized {

class ShardedWeights {
 public:
  // As of WeightStore.
  ShardedWeights(const WeightInputs& inputs, const UnitPlan& units, const GatherPlan& gathers);

  // Internal unless uses are those of the plan, in its order, from BeginStep to EndStep. Writes into the table what may
  // be read, and nulls what may not.
  void BeginStep() { next_use_ = 0; }
  void BeforeUse(int64_t unit);
  void AfterUse(int64_t unit);
  void EndStep() const;

  Buffer Updated(const ShardSlice& slice) const { return shard_.Range(slice.shard_offset, slice.elems()); }
  void AppendHeld(std::vector<WeightSlice>& slices) const;

 private:
  struct Gathered {
    Storage memory;
    Handle arrival;  // destroyed first
  };

  const UnitUse& NextUse(int64_t unit) const;
  void Gather(int64_t bucket);
  void Show(int64_t bucket);
  void Hide(int64_t bucket);
  void Release(int64_t bucket);

  const WeightInputs inputs_;
  const UnitPlan& units_;
  const GatherPlan& gathers_;
  const FlatBuffer shard_;
  std::vector<std::vector<int64_t>> buckets_of_group_;
  std::vector<Gathered> gathered_;  // by bucket
  size_t next_use_;                 // between steps: all are over
};

}  // namespace plumbline::optimized
