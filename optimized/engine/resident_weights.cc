// SPDX-License-Identifier: Apache-2.0
// See resident_weights.h.
#include "optimized/engine/resident_weights.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "optimized/engine/frozen_weights.h"

namespace plumbline::optimized {
namespace {

constexpr int kWeightStream = 2;

int64_t FirstElem(const BucketPlan& plan, int64_t first_bucket) {
  return first_bucket < static_cast<int64_t>(plan.buckets.size()) ? plan.buckets[first_bucket].flat_offset
                                                                  : plan.total_elems;
}

class ResidentWeights final : public WeightStore {
 public:
  ResidentWeights(const WeightInputs& inputs, bool is_sharded)
      : is_sharded_(is_sharded), buckets_(inputs, 0), frozen_(inputs) {
    buckets_.FillTable();
  }

  void BeforeUse(int64_t) override {}
  void AfterUse(int64_t) override {}

  std::vector<WeightSlice> Held() const override {
    std::vector<WeightSlice> slices;
    buckets_.AppendHeld(slices);
    std::ranges::copy(Frozen(), std::back_inserter(slices));
    return slices;
  }
  std::vector<WeightSlice> Frozen() const override { return frozen_.Held(); }
  Buffer Updated(const ShardSlice& slice) const override { return buckets_.Updated(slice); }
  void BeginStep() override {}
  void Publish() override {
    if (is_sharded_) buckets_.GatherAll();
  }

 private:
  const bool is_sharded_;
  ResidentBuckets buckets_;
  const FrozenWeights frozen_;
};

}  // namespace

ResidentBuckets::ResidentBuckets(const WeightInputs& inputs, int64_t first_bucket)
    : inputs_(inputs),
      first_bucket_(first_bucket),
      first_elem_(FirstElem(inputs.buckets, first_bucket)),
      whole_(inputs.backend, inputs.buckets.total_elems - first_elem_, inputs.storage, MemoryCategory::kWeights) {}

Buffer ResidentBuckets::Whole(int64_t parameter) const {
  const ParameterPlace& place = inputs_.buckets.places[parameter];
  return whole_.Range(place.flat_offset - first_elem_, place.numel);
}

Buffer ResidentBuckets::Updated(const ShardSlice& slice) const {
  return whole_.Range(slice.flat_offset - first_elem_, slice.elems());
}

void ResidentBuckets::AppendHeld(std::vector<WeightSlice>& slices) const {
  for (size_t parameter = 0; parameter < inputs_.buckets.places.size(); ++parameter) {
    const auto index = static_cast<int64_t>(parameter);
    if (Holds(index)) slices.push_back({index, 0, Whole(index)});
  }
}

void ResidentBuckets::FillTable() const {
  for (size_t parameter = 0; parameter < inputs_.buckets.places.size(); ++parameter) {
    const auto index = static_cast<int64_t>(parameter);
    if (Holds(index)) inputs_.table[parameter] = Whole(index).data;
  }
}

void ResidentBuckets::GatherAll() {
  for (size_t bucket = first_bucket_; bucket < inputs_.buckets.buckets.size(); ++bucket) {
    const BucketShard& part = inputs_.shard.buckets[bucket];
    const Bucket& whole = inputs_.buckets.buckets[bucket];
    in_flight_.push_back(
        inputs_.communicator.AllGather(whole_.Range(part.flat_offset - first_elem_, part.elems),
                                       whole_.Range(whole.flat_offset - first_elem_, whole.padded_elems),
                                       {"weight bucket " + std::to_string(bucket), inputs_.timeout, kWeightStream}));
  }
  for (Handle& handle : in_flight_) handle.Wait();
  in_flight_.clear();
}

std::unique_ptr<WeightStore> MakeResidentWeights(const WeightInputs& inputs, bool is_sharded) {
  return std::make_unique<ResidentWeights>(inputs, is_sharded);
}

}  // namespace plumbline::optimized
