// SPDX-License-Identifier: Apache-2.0
// ZeRO 3: the executor of a plan of gathers. It decides nothing: what to gather before a use and what to release after
// it is in the plan. Memory of a gathered bucket exists from the posting of its all-gather to its release, and is
// poisoned before it is freed, so that a use after the release shows.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "conformance/contract/error.h"
#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/frozen_weights.h"
#include "optimized/engine/resident_weights.h"
#include "optimized/engine/weight_store.h"

namespace plumbline::optimized {
namespace {

constexpr int kGatherStream = 3;

// The buckets of the groups come first in the plan, the persistent ones last.
int64_t NumShardedBuckets(const BucketPlan& buckets, size_t num_groups) {
  int64_t count = 0;
  for (const Bucket& bucket : buckets.buckets) count += bucket.set < static_cast<int64_t>(num_groups) ? 1 : 0;
  return count;
}

int64_t ShardElems(const ShardPlan& shard, int64_t num_buckets) {
  int64_t elems = 0;
  for (int64_t bucket = 0; bucket < num_buckets; ++bucket) elems += shard.buckets[bucket].elems;
  return elems;
}

class ShardedWeights final : public WeightStore {
 public:
  ShardedWeights(const WeightInputs& inputs, const UnitPlan& units, const GatherPlan& gathers)
      : inputs_(inputs),
        units_(units),
        gathers_(gathers),
        num_sharded_(NumShardedBuckets(inputs.buckets, units.groups.size())),
        shard_(inputs.backend, ShardElems(inputs.shard, num_sharded_), inputs.storage, MemoryCategory::kWeights),
        persistent_(inputs, num_sharded_),
        frozen_(inputs),
        buckets_of_group_(units.groups.size()),
        gathered_(num_sharded_),
        next_use_(gathers.uses.size()) {
    for (int64_t bucket = 0; bucket < num_sharded_; ++bucket) {
      buckets_of_group_[inputs.buckets.buckets[bucket].set].push_back(bucket);
    }
    persistent_.FillTable();
  }

  void BeginStep() override { next_use_ = 0; }

  void BeforeUse(int64_t unit) override {
    const UnitUse& use = NextUse(unit);
    for (const int64_t group : use.gather) {
      for (const int64_t bucket : buckets_of_group_[group]) Gather(bucket);
    }
    for (const int64_t group : units_.groups_of_unit[unit]) {
      for (const int64_t bucket : buckets_of_group_[group]) Show(bucket);
    }
  }

  void AfterUse(int64_t unit) override {
    const UnitUse& use = NextUse(unit);
    for (const int64_t group : units_.groups_of_unit[unit]) {
      for (const int64_t bucket : buckets_of_group_[group]) Hide(bucket);
    }
    for (const int64_t group : use.release) {
      for (const int64_t bucket : buckets_of_group_[group]) Release(bucket);
    }
    ++next_use_;
  }

  std::vector<WeightSlice> Held() const override {
    std::vector<WeightSlice> slices;
    for (const ShardSlice& slice : inputs_.shard.slices) {
      if (!persistent_.Holds(slice.parameter)) slices.push_back({slice.parameter, slice.begin, Updated(slice)});
    }
    persistent_.AppendHeld(slices);
    std::ranges::copy(Frozen(), std::back_inserter(slices));
    return slices;
  }

  std::vector<WeightSlice> Frozen() const override { return frozen_.Held(); }

  Buffer Updated(const ShardSlice& slice) const override {
    return persistent_.Holds(slice.parameter) ? persistent_.Updated(slice)
                                              : shard_.Range(slice.shard_offset, slice.elems());
  }

  void Publish() override {
    contract::Check(next_use_ == gathers_.uses.size(), "a step uses every unit as often as its plan says");
    persistent_.GatherAll();
  }

 private:
  struct Gathered {
    Storage memory;
    Handle arrival;  // destroyed before the memory
  };

  const UnitUse& NextUse(int64_t unit) const {
    contract::Check(next_use_ < gathers_.uses.size() && gathers_.uses[next_use_].unit == unit,
                    "the model uses its units in the order of its outline; unit " + std::to_string(unit) + " in use " +
                        std::to_string(next_use_));
    return gathers_.uses[next_use_];
  }

  void Gather(int64_t bucket) {
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

  void Show(int64_t bucket) {
    Gathered& gathered = gathered_[bucket];
    contract::Check(gathered.memory.data() != nullptr, "what is used has been gathered");
    gathered.arrival.Wait();
    for (const int64_t parameter : inputs_.buckets.buckets[bucket].parameters) {
      inputs_.table[parameter] = gathered.memory.data() +
                                 inputs_.buckets.places[parameter].bucket_offset * contract::SizeBytes(inputs_.storage);
    }
  }

  // What stays gathered is out of reach too until its next use.
  void Hide(int64_t bucket) {
    for (const int64_t parameter : inputs_.buckets.buckets[bucket].parameters) inputs_.table[parameter] = nullptr;
  }

  void Release(int64_t bucket) {
    Gathered& gathered = gathered_[bucket];
    inputs_.backend.Poison(gathered.memory.data(), gathered.memory.size_bytes());
    gathered.memory = Storage();
  }

  const WeightInputs inputs_;
  const UnitPlan& units_;
  const GatherPlan& gathers_;
  const int64_t num_sharded_;
  const FlatBuffer shard_;
  ResidentBuckets persistent_;
  const FrozenWeights frozen_;
  std::vector<std::vector<int64_t>> buckets_of_group_;
  std::vector<Gathered> gathered_;
  size_t next_use_;  // between steps: all are over
};

}  // namespace

std::unique_ptr<WeightStore> MakeShardedWeights(const WeightInputs& inputs, const UnitPlan& units,
                                                const GatherPlan& gathers) {
  return std::make_unique<ShardedWeights>(inputs, units, gathers);
}

}  // namespace plumbline::optimized
