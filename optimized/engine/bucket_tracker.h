// SPDX-License-Identifier: Apache-2.0
// Counts which gradients of a micro-batch are in memory and says when a bucket is full. Bookkeeping only.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/partition/bucket_plan.h"

namespace plumbline::optimized {

class BucketTracker {
 public:
  explicit BucketTracker(const BucketPlan& plan) : plan_(plan) {}

  void BeginMicroBatch();

  // Returns the bucket's index if this was its last missing parameter, else -1. Internal if the parameter was reported
  // before or is in no bucket.
  int64_t Ready(int64_t parameter);

  // Internal, naming a parameter, unless every one that is in a bucket was reported.
  void EndMicroBatch() const;

 private:
  const BucketPlan& plan_;
  std::vector<int64_t> missing_in_bucket_;
  std::vector<bool> is_ready_;
};

}  // namespace plumbline::optimized
