// SPDX-License-Identifier: Apache-2.0
// See bucket_plan.h: first which parameters share a bucket, then where they lie.
#include "optimized/partition/bucket_plan.h"

#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

void RequirePositive(const char* name, int64_t value) {
  if (value >= 1) return;
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 std::string(name) + " is " + std::to_string(value) + "; allowed: at least 1");
}

std::vector<Bucket> GroupInReverse(std::span<const int64_t> numels, int64_t bucket_elems) {
  std::vector<Bucket> buckets;
  int64_t open_elems = 0;
  for (size_t parameter = numels.size(); parameter-- > 0;) {
    RequirePositive("numel", numels[parameter]);
    if (buckets.empty() || open_elems + numels[parameter] > bucket_elems) {
      buckets.emplace_back();
      open_elems = 0;
    }
    buckets.back().parameters.push_back(static_cast<int64_t>(parameter));
    open_elems += numels[parameter];
  }
  return buckets;
}

}  // namespace

BucketPlan PlanBuckets(std::span<const int64_t> numels, int64_t bucket_elems, int64_t world) {
  RequirePositive("reduce_bucket_size", bucket_elems);
  RequirePositive("world", world);
  BucketPlan plan;
  plan.buckets = GroupInReverse(numels, bucket_elems);
  plan.places.resize(numels.size());
  for (size_t index = 0; index < plan.buckets.size(); ++index) {
    Bucket& bucket = plan.buckets[index];
    bucket.flat_offset = plan.total_elems;
    int64_t end = 0;
    for (const int64_t parameter : bucket.parameters) {
      const int64_t begin = RoundUp(end, kAlignmentElems);
      plan.places[parameter] = {static_cast<int64_t>(index), begin, bucket.flat_offset + begin, numels[parameter]};
      end = begin + numels[parameter];
    }
    bucket.padded_elems = RoundUp(end, kAlignmentElems * world);
    plan.total_elems += bucket.padded_elems;
  }
  return plan;
}

}  // namespace plumbline::optimized
