// SPDX-License-Identifier: Apache-2.0
// Which parameters share a gradient bucket, and where each lies in the flat buffer. Pure integer arithmetic: no memory,
// no ranks' state. Source: docs/formats.md, "Buckets and the ledger".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::optimized {

// A parameter begins at a multiple of this many elements (64 bytes in BF16, 128 in F32).
inline constexpr int64_t kAlignmentElems = 32;

inline constexpr int64_t kNoBucket = -1;

// Where a parameter lies. Offsets are in elements.
struct ParameterPlace {
  int64_t bucket = kNoBucket;  // of a frozen parameter: no bucket, and no place
  int64_t bucket_offset = 0;
  int64_t flat_offset = 0;  // the bucket's flat_offset + bucket_offset
  int64_t numel = 0;
};

struct Bucket {
  std::vector<int64_t> parameters;  // canonical indices, in the order in which backward finishes them
  int64_t set = 0;                  // the set of parameters that the bucket belongs to
  int64_t flat_offset = 0;
  int64_t padded_elems = 0;  // a multiple of kAlignmentElems * world
};

struct BucketPlan {
  std::vector<Bucket> buckets;         // in the order in which backward fills them; contiguous in the flat buffer
  std::vector<ParameterPlace> places;  // by canonical index
  int64_t total_elems = 0;
};

// numels by canonical index. Walked in reverse: a parameter joins the open bucket unless that is not empty and would
// then hold more than bucket_elems elements of parameters, padding not counted. InvalidArgument if an argument is
// below 1.
BucketPlan PlanBuckets(std::span<const int64_t> numels, int64_t bucket_elems, int64_t world);

// The same within each of several sets of parameters, one set after the other: no bucket holds parameters of two sets.
// A parameter in no set (a frozen one) is in no bucket. InvalidArgument also if a parameter does not exist or is in two
// sets. A set may be empty.
BucketPlan PlanBuckets(std::span<const int64_t> numels, std::span<const std::vector<int64_t>> sets,
                       int64_t bucket_elems, int64_t world);

}  // namespace plumbline::optimized
