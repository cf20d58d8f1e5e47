// SPDX-License-Identifier: Apache-2.0
#include "reference/model/step_batch.h"

#include <gtest/gtest.h>

#include <vector>

#include "conformance/contract/batches.h"
#include "reference/ops/embedding.h"

namespace plumbline::reference {
namespace {

// Two steps, 4 and 5, of two samples of three positions.
contract::Batches TwoSteps() {
  contract::Batches batches;
  batches.steps = 2;
  batches.batch = 2;
  batches.positions = 3;
  batches.first_step = 4;
  batches.tokens = {0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6};
  batches.labels = {0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 7};
  batches.loss_weights = {1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0};
  return batches;
}

TEST(StepBatch, HasTheStepsSamplesOneAfterTheOther) {
  const StepBatch batch = BatchOf(TwoSteps(), 5);
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(batch.labels, (std::vector<int64_t>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(batch.loss_weights, (std::vector<double>{1, 0, 1, 0, 0, 0}));
}

TEST(StepBatch, HasNoTokenAndNoLabelAtPadding) {
  contract::Batches batches = TwoSteps();
  batches.lengths = {3, 3, 3, 1};
  const StepBatch batch = BatchOf(batches, 5);
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{1, 2, 3, 4, kNoToken, kNoToken}));
  EXPECT_EQ(batch.labels, (std::vector<int64_t>{2, 3, 4, 5, 0, 0}));
  EXPECT_EQ(batch.loss_weights, (std::vector<double>{1, 0, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace plumbline::reference
