// SPDX-License-Identifier: Apache-2.0
// See shard_plan.h: per bucket, the intersection of the part with every parameter in it.
#include "optimized/partition/shard_plan.h"

#include <algorithm>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {

ShardPlan PlanShard(const BucketPlan& plan, int64_t degree, int64_t index) {
  if (degree < 1 || index < 0 || index >= degree) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "shard " + std::to_string(index) + " of " + std::to_string(degree) + " does not exist");
  }
  ShardPlan shard;
  for (const Bucket& bucket : plan.buckets) {
    if (bucket.padded_elems % degree != 0) {
      contract::Fail(contract::ErrorCode::kInvalidArgument, "a bucket of " + std::to_string(bucket.padded_elems) +
                                                                " elements has no " + std::to_string(degree) +
                                                                " equal parts");
    }
    const int64_t part_elems = bucket.padded_elems / degree;
    const int64_t part_begin = index * part_elems;
    const int64_t part_end = part_begin + part_elems;
    for (const int64_t parameter : bucket.parameters) {
      const ParameterPlace& place = plan.places[parameter];
      const int64_t begin = std::max(place.bucket_offset, part_begin);
      const int64_t end = std::min(place.bucket_offset + place.numel, part_end);
      if (begin >= end) continue;
      shard.slices.push_back({parameter, begin - place.bucket_offset, end - place.bucket_offset,
                              bucket.flat_offset + begin, shard.total_elems + begin - part_begin});
    }
    shard.buckets.push_back({bucket.flat_offset + part_begin, shard.total_elems, part_elems});
    shard.total_elems += part_elems;
  }
  return shard;
}

}  // namespace plumbline::optimized
