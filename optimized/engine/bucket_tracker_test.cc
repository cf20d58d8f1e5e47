// SPDX-License-Identifier: Apache-2.0
// A bucket is full exactly when its last parameter is reported, in each micro-batch anew.
#include "optimized/engine/bucket_tracker.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

const std::vector<int64_t> kNumels = {10, 20, 30};

TEST(BucketTracker, ReportsABucketWithItsLastParameterInEveryMicroBatch) {
  const BucketPlan plan = PlanBuckets(kNumels, 50, 1);  // {2, 1}, {0}
  BucketTracker tracker(plan);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    tracker.BeginMicroBatch();
    EXPECT_EQ(tracker.Ready(2), -1);
    EXPECT_EQ(tracker.Ready(1), 0);
    EXPECT_EQ(tracker.Ready(0), 1);
    tracker.EndMicroBatch();
  }
}

TEST(BucketTracker, RefusesAGradientReportedTwiceAndOneNotReported) {
  const BucketPlan plan = PlanBuckets(kNumels, 1000, 1);
  BucketTracker tracker(plan);
  tracker.BeginMicroBatch();
  tracker.Ready(2);
  EXPECT_THROW(tracker.Ready(2), contract::Error);
  tracker.Ready(0);
  EXPECT_THROW(tracker.EndMicroBatch(), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
