// SPDX-License-Identifier: Apache-2.0
#include "conformance/engines/torch_eager/padding.h"

#include <gtest/gtest.h>

#include <vector>

namespace plumbline::conformance::torch_eager {
namespace {

contract::Batches Sizes(int64_t steps, int64_t batch, int64_t positions) {
  return {.steps = steps, .batch = batch, .positions = positions, .tokens = {}, .labels = {}, .loss_weights = {}};
}

TEST(WithFilledPadding, RepeatsTheFirstOfEachSampleBehindItsLength) {
  contract::Batches batches = Sizes(2, 2, 3);
  batches.first_step = 5;
  batches.lengths = {3, 1, 2, 1};
  const std::vector<int32_t> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(WithFilledPadding(batches, values), (std::vector<int32_t>{1, 2, 3, 4, 4, 4, 7, 8, 7, 10, 10, 10}));
}

TEST(WithFilledPadding, LeavesSamplesWithoutLengths) {
  EXPECT_EQ(WithFilledPadding(Sizes(1, 2, 2), {1, 2, 3, 4}), (std::vector<int32_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
