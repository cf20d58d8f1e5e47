// SPDX-License-Identifier: Apache-2.0
// Which elements of which parameters a rank holds: of every bucket one of `degree` equal parts. Pure integer
// arithmetic. Degree 1 is the unsharded case: the one part is everything, and every rank holds it. Source:
// docs/formats.md, "Buckets and the ledger".
#pragma once

#include <cstdint>
#include <span>
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
  int64_t flat_offset = 0;    // of element `begin` in the flat buffer of whole buckets
  int64_t shard_offset = 0;   // of element `begin` in the buffer that holds only this shard
  bool is_first_copy = true;  // no rank before this one holds the same elements: sums over ranks count them here

  int64_t elems() const { return end - begin; }
};

struct ShardPlan {
  std::vector<BucketShard> buckets;  // one per bucket, same order
  std::vector<ShardSlice> slices;    // by bucket, then in the bucket's order
  int64_t total_elems = 0;

  // Of the parts of the first so many buckets, which lie one after the other.
  int64_t ElemsOfFirst(int64_t num_buckets) const;
};

// InvalidArgument unless 0 <= index < degree and degree divides every bucket's padded length.
ShardPlan PlanShard(const BucketPlan& plan, int64_t degree, int64_t index);

// What rank `index` holds where every bucket has a degree of its own. InvalidArgument unless there is a degree for each
// bucket, which divides its padded length and is 1 or more than index.
ShardPlan PlanShard(const BucketPlan& plan, std::span<const int64_t> degrees, int64_t index);

}  // namespace plumbline::optimized
