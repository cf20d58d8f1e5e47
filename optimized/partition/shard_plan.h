// SPDX-License-Identifier: Apache-2.0
// Which elements of which parameters one of `degree` equal parts of every bucket holds. Pure integer arithmetic.
// Degree 1 is the unsharded case: everything is held by the one part. Source: docs/formats.md, "Buckets and the
// ledger".
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/partition/bucket_plan.h"

namespace plumbline::optimized {

// A part of one bucket.
struct BucketShard {
  int64_t flat_offset = 0;   // where the part begins in the flat buffer of whole buckets
  int64_t shard_offset = 0;  // where it begins in the buffer that holds only this shard
  int64_t elems = 0;
};

// A parameter's elements [begin, end) that lie in the shard; never empty, never padding.
struct ShardSlice {
  int64_t parameter = 0;  // canonical index
  int64_t begin = 0;      // row-major indices in the whole tensor
  int64_t end = 0;
  int64_t flat_offset = 0;   // of element `begin` in the flat buffer of whole buckets
  int64_t shard_offset = 0;  // of element `begin` in the buffer that holds only this shard

  int64_t elems() const { return end - begin; }
};

struct ShardPlan {
  std::vector<BucketShard> buckets;  // one per bucket, same order
  std::vector<ShardSlice> slices;    // by bucket, then in the bucket's order
  int64_t total_elems = 0;
};

// InvalidArgument unless 0 <= index < degree and degree divides every bucket's padded length.
ShardPlan PlanShard(const BucketPlan& plan, int64_t degree, int64_t index);

}  // namespace plumbline::optimized
