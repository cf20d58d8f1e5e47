// SPDX-License-Identifier: Apache-2.0
// Every sample is computed once, and by the rank and in the micro-batch that docs/exact-family.md says: sums cannot
// show it.
#include "optimized/partition/sample_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

TEST(SamplePlan, MicroBatchesOfAllRanksFollowEachOtherWithinAnAccumulationStep) {
  EXPECT_EQ(FirstSample(0, 0, 2, 3), 0);
  EXPECT_EQ(FirstSample(0, 1, 2, 3), 3);
  EXPECT_EQ(FirstSample(1, 0, 2, 3), 6);
  EXPECT_EQ(FirstSample(1, 1, 2, 3), 9);
}

TEST(SamplePlan, CoversEverySampleOnce) {
  for (int64_t data_degree = 1; data_degree <= 9; ++data_degree) {
    for (int64_t accumulation = 1; accumulation <= 5; ++accumulation) {
      for (const int64_t samples : {1, 2, 3, 7}) {
        std::vector<int> covered(data_degree * accumulation * samples, 0);
        for (int64_t a = 0; a < accumulation; ++a) {
          for (int64_t rank = 0; rank < data_degree; ++rank) {
            for (int64_t i = 0; i < samples; ++i) ++covered.at(FirstSample(a, rank, data_degree, samples) + i);
          }
        }
        for (const int times : covered) ASSERT_EQ(times, 1);
      }
    }
  }
}

TEST(SamplePlan, RefusesWhatDoesNotExist) {
  EXPECT_THROW(FirstSample(-1, 0, 1, 1), contract::Error);
  EXPECT_THROW(FirstSample(0, 1, 1, 1), contract::Error);
  EXPECT_THROW(FirstSample(0, -1, 1, 1), contract::Error);
  EXPECT_THROW(FirstSample(0, 0, 1, 0), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
