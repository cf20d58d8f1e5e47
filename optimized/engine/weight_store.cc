// SPDX-License-Identifier: Apache-2.0
// See weight_store.h.
#include "optimized/engine/weight_store.h"

#include <algorithm>
#include <iterator>

namespace plumbline::optimized {

WeightStore::WeightStore(const WeightInputs& inputs, const UnitPlan& units, const GatherPlan& gathers)
    : sharded_(inputs, units, gathers), resident_(inputs), frozen_(inputs) {}

std::vector<WeightSlice> WeightStore::Held() const {
  std::vector<WeightSlice> slices;
  sharded_.AppendHeld(slices);
  resident_.AppendHeld(slices);
  std::ranges::copy(Frozen(), std::back_inserter(slices));
  return slices;
}

Buffer WeightStore::Updated(const ShardSlice& slice) const {
  return resident_.Holds(slice.parameter) ? resident_.Updated(slice) : sharded_.Updated(slice);
}

void WeightStore::Publish() {
  sharded_.EndStep();
  resident_.GatherShards();
}

}  // namespace plumbline::optimized
