// SPDX-License-Identifier: Apache-2.0
// See bucket_plan.h: first which parameters share a bucket, then where they lie.
#include "optimized/partition/bucket_plan.h"

#include <algorithm>
#include <numeric>
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

// Appends the buckets of one set to those of the sets before it.
void GroupInReverse(std::span<const int64_t> numels, std::vector<int64_t> set, int64_t set_index, int64_t bucket_elems,
                    std::vector<Bucket>& buckets) {
  std::sort(set.rbegin(), set.rend());
  int64_t open_elems = 0;
  bool is_open = false;
  for (const int64_t parameter : set) {
    if (!is_open || open_elems + numels[parameter] > bucket_elems) {
      buckets.push_back({{}, set_index, 0, 0});
      open_elems = 0;
      is_open = true;
    }
    buckets.back().parameters.push_back(parameter);
    open_elems += numels[parameter];
  }
}

void RequireDisjoint(std::span<const int64_t> numels, std::span<const std::vector<int64_t>> sets) {
  std::vector<int64_t> times(numels.size(), 0);
  for (const std::vector<int64_t>& set : sets) {
    for (const int64_t parameter : set) {
      if (parameter < 0 || parameter >= static_cast<int64_t>(numels.size()) || ++times[parameter] > 1) {
        contract::Fail(contract::ErrorCode::kInvalidArgument,
                       "parameter " + std::to_string(parameter) + " does not exist or is in two sets");
      }
    }
  }
  for (const int64_t numel : numels) RequirePositive("numel", numel);
}

}  // namespace

BucketPlan PlanBuckets(std::span<const int64_t> numels, int64_t bucket_elems, int64_t world) {
  std::vector<int64_t> all(numels.size());
  std::iota(all.begin(), all.end(), 0);
  return PlanBuckets(numels, std::span(&all, 1), bucket_elems, world);
}

BucketPlan PlanBuckets(std::span<const int64_t> numels, std::span<const std::vector<int64_t>> sets,
                       int64_t bucket_elems, int64_t world) {
  RequirePositive("reduce_bucket_size", bucket_elems);
  RequirePositive("world", world);
  RequireDisjoint(numels, sets);
  BucketPlan plan;
  for (size_t set = 0; set < sets.size(); ++set) {
    GroupInReverse(numels, sets[set], static_cast<int64_t>(set), bucket_elems, plan.buckets);
  }
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
