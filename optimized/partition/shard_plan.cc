// SPDX-License-Identifier: Apache-2.0
// See shard_plan.h: per bucket, the intersection of the part with every parameter in it.
#include "optimized/partition/shard_plan.h"

#include <algorithm>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

void RequirePart(int64_t degree, int64_t index) {
  if (degree >= 1 && index >= 0 && index < degree) return;
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 "shard " + std::to_string(index) + " of " + std::to_string(degree) + " does not exist");
}

void RequireDivides(int64_t degree, const Bucket& bucket) {
  if (bucket.padded_elems % degree == 0) return;
  contract::Fail(contract::ErrorCode::kInvalidArgument, "a bucket of " + std::to_string(bucket.padded_elems) +
                                                            " elements has no " + std::to_string(degree) +
                                                            " equal parts");
}

// Appends part `index` of `degree` of the bucket.
void AppendPart(const BucketPlan& plan, const Bucket& bucket, int64_t degree, int64_t index, bool is_first_copy,
                ShardPlan& shard) {
  const int64_t part_elems = bucket.padded_elems / degree;
  const int64_t part_begin = index * part_elems;
  const int64_t part_end = part_begin + part_elems;
  for (const int64_t parameter : bucket.parameters) {
    const ParameterPlace& place = plan.places[parameter];
    const int64_t begin = std::max(place.bucket_offset, part_begin);
    const int64_t end = std::min(place.bucket_offset + place.numel, part_end);
    if (begin >= end) continue;
    shard.slices.push_back({parameter, begin - place.bucket_offset, end - place.bucket_offset,
                            bucket.flat_offset + begin, shard.total_elems + begin - part_begin, is_first_copy});
  }
  shard.buckets.push_back({bucket.flat_offset + part_begin, shard.total_elems, part_elems});
  shard.total_elems += part_elems;
}

}  // namespace

int64_t ShardPlan::ElemsOfFirst(int64_t num_buckets) const {
  return num_buckets < static_cast<int64_t>(buckets.size()) ? buckets[num_buckets].shard_offset : total_elems;
}

ShardPlan PlanShard(const BucketPlan& plan, int64_t degree, int64_t index) {
  RequirePart(degree, index);
  return PlanShard(plan, std::vector(plan.buckets.size(), degree), index);
}

ShardPlan PlanShard(const BucketPlan& plan, std::span<const int64_t> degrees, int64_t index) {
  if (degrees.size() != plan.buckets.size()) {
    contract::Fail(contract::ErrorCode::kInvalidArgument, std::to_string(degrees.size()) + " degrees are given to " +
                                                              std::to_string(plan.buckets.size()) +
                                                              " buckets; allowed: one each");
  }
  ShardPlan shard;
  for (size_t i = 0; i < plan.buckets.size(); ++i) {
    const bool is_whole = degrees[i] == 1;
    const int64_t part = is_whole ? std::min(index, int64_t{0}) : index;
    RequirePart(degrees[i], part);
    RequireDivides(degrees[i], plan.buckets[i]);
    AppendPart(plan, plan.buckets[i], degrees[i], part, !is_whole || index == 0, shard);
  }
  return shard;
}

}  // namespace plumbline::optimized
