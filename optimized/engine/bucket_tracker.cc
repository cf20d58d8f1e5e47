// SPDX-License-Identifier: Apache-2.0
// See bucket_tracker.h.
#include "optimized/engine/bucket_tracker.h"

#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {

void BucketTracker::BeginMicroBatch() {
  is_ready_.assign(plan_.places.size(), false);
  missing_in_bucket_.clear();
  for (const Bucket& bucket : plan_.buckets) {
    missing_in_bucket_.push_back(static_cast<int64_t>(bucket.parameters.size()));
  }
}

int64_t BucketTracker::Ready(int64_t parameter) {
  contract::Check(plan_.places.at(parameter).bucket != kNoBucket, "backward reports no gradient of a frozen parameter");
  contract::Check(!is_ready_.at(parameter), "backward reports each gradient once");
  is_ready_[parameter] = true;
  const int64_t bucket = plan_.places[parameter].bucket;
  return --missing_in_bucket_[bucket] == 0 ? bucket : -1;
}

void BucketTracker::EndMicroBatch() const {
  for (size_t parameter = 0; parameter < is_ready_.size(); ++parameter) {
    contract::Check(is_ready_[parameter] || plan_.places[parameter].bucket == kNoBucket,
                    "backward reports every gradient; missing: " + std::to_string(parameter));
  }
}

}  // namespace plumbline::optimized
