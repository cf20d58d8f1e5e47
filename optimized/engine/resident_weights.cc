// SPDX-License-Identifier: Apache-2.0
// See resident_weights.h.
#include "optimized/engine/resident_weights.h"

#include <string>

namespace plumbline::optimized {
namespace {

constexpr int kWeightStream = 2;

int64_t FirstElem(const BucketPlan& plan, int64_t first_bucket) {
  return first_bucket < static_cast<int64_t>(plan.buckets.size()) ? plan.buckets[first_bucket].flat_offset
                                                                  : plan.total_elems;
}

}  // namespace

ResidentBuckets::ResidentBuckets(const WeightInputs& inputs)
    : inputs_(inputs),
      first_bucket_(inputs.staged.num_of_groups),
      first_elem_(FirstElem(inputs.buckets, first_bucket_)),
      whole_(inputs.backend, inputs.buckets.total_elems - first_elem_, inputs.storage, MemoryCategory::kWeights) {
  for (size_t parameter = 0; parameter < inputs_.buckets.places.size(); ++parameter) {
    const auto index = static_cast<int64_t>(parameter);
    if (Holds(index)) inputs_.table[parameter] = Whole(index).data;
  }
}

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

void ResidentBuckets::GatherShards() {
  for (int64_t bucket = first_bucket_; bucket < inputs_.staged.num_sharded; ++bucket) {
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

}  // namespace plumbline::optimized
