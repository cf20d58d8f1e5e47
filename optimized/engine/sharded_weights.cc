// SPDX-License-Identifier: Apache-2.0
// See sharded_weights.h.
#include "optimized/engine/sharded_weights.h"

#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

constexpr int kGatherStream = 3;

}  // namespace

ShardedWeights::ShardedWeights(const WeightInputs& inputs, const UnitPlan& units, const GatherPlan& gathers)
    : inputs_(inputs),
      units_(units),
      gathers_(gathers),
      shard_(inputs.backend, inputs.shard.ElemsOfFirst(inputs.staged.num_of_groups), inputs.storage,
             MemoryCategory::kWeights),
      buckets_of_group_(units.groups.size()),
      gathered_(inputs.staged.num_of_groups),
      next_use_(gathers.uses.size()) {
  for (int64_t bucket = 0; bucket < inputs.staged.num_of_groups; ++bucket) {
    buckets_of_group_.at(inputs.buckets.buckets[bucket].set).push_back(bucket);
  }
}

void ShardedWeights::BeforeUse(int64_t unit) {
  const UnitUse& use = NextUse(unit);
  for (const int64_t group : use.gather) {
    for (const int64_t bucket : buckets_of_group_[group]) Gather(bucket);
  }
  for (const int64_t group : units_.groups_of_unit[unit]) {
    for (const int64_t bucket : buckets_of_group_[group]) Show(bucket);
  }
}

void ShardedWeights::AfterUse(int64_t unit) {
  const UnitUse& use = NextUse(unit);
  for (const int64_t group : units_.groups_of_unit[unit]) {
    for (const int64_t bucket : buckets_of_group_[group]) Hide(bucket);
  }
  for (const int64_t group : use.release) {
    for (const int64_t bucket : buckets_of_group_[group]) Release(bucket);
  }
  ++next_use_;
}

void ShardedWeights::EndStep() const {
  contract::Check(next_use_ == gathers_.uses.size(), "a step uses every unit as often as its plan says");
}

void ShardedWeights::AppendHeld(std::vector<WeightSlice>& slices) const {
  for (const ShardSlice& slice : inputs_.shard.slices) {
    const bool is_of_group = inputs_.buckets.places[slice.parameter].bucket < inputs_.staged.num_of_groups;
    if (is_of_group) slices.push_back({slice.parameter, slice.begin, Updated(slice)});
  }
}

const UnitUse& ShardedWeights::NextUse(int64_t unit) const {
  contract::Check(next_use_ < gathers_.uses.size() && gathers_.uses[next_use_].unit == unit,
                  "the model uses its units in the order of its outline; unit " + std::to_string(unit) + " in use " +
                      std::to_string(next_use_));
  return gathers_.uses[next_use_];
}

void ShardedWeights::Gather(int64_t bucket) {
  const int64_t padded_elems = inputs_.buckets.buckets[bucket].padded_elems;
  const BucketShard& part = inputs_.shard.buckets[bucket];
  Gathered& gathered = gathered_[bucket];
  contract::Check(gathered.memory.data() == nullptr, "a bucket is not gathered twice");
  gathered.memory =
      inputs_.backend.Allocate(padded_elems * contract::SizeBytes(inputs_.storage), MemoryCategory::kGatheredWeights);
  gathered.arrival = inputs_.communicator.AllGather(
      shard_.Range(part.shard_offset, part.elems), {gathered.memory.data(), padded_elems, inputs_.storage},
      {"gather of bucket " + std::to_string(bucket), inputs_.timeout, kGatherStream});
}

void ShardedWeights::Show(int64_t bucket) {
  Gathered& gathered = gathered_[bucket];
  contract::Check(gathered.memory.data() != nullptr, "what is used has been gathered");
  gathered.arrival.Wait();
  for (const int64_t parameter : inputs_.buckets.buckets[bucket].parameters) {
    inputs_.table[parameter] =
        gathered.memory.data() + inputs_.buckets.places[parameter].bucket_offset * contract::SizeBytes(inputs_.storage);
  }
}

// What stays gathered is out of reach too until its next use.
void ShardedWeights::Hide(int64_t bucket) {
  for (const int64_t parameter : inputs_.buckets.buckets[bucket].parameters) inputs_.table[parameter] = nullptr;
}

void ShardedWeights::Release(int64_t bucket) {
  Gathered& gathered = gathered_[bucket];
  inputs_.backend.Poison(gathered.memory.data(), gathered.memory.size_bytes());
  gathered.memory = Storage();
}

}  // namespace plumbline::optimized
