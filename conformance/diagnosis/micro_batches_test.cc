// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/micro_batches.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

// Two steps (10 and 11), three samples of two positions; step 11 has four weighted tokens.
contract::Batches Example() {
  contract::Batches batches;
  batches.steps = 2;
  batches.batch = 3;
  batches.positions = 2;
  batches.first_step = 10;
  for (int32_t i = 0; i < 12; ++i) {
    batches.tokens.push_back(i);
    batches.labels.push_back(100 + i);
  }
  batches.loss_weights = {2, 10, 0, 0, 0, 0, /*step 11:*/ 4, 20, 4, 0, 4, 0};
  return batches;
}

using Weights = std::vector<int32_t>;

TEST(MicroBatches, SharesOfTheExactFamilyKeepTheirFactorsAndCountTheirOwnTokens) {
  // Factors 1, 5, 1, 0, 1, 0, in multiples of the tokens that remain.
  EXPECT_EQ(OnlySamples(Example(), 11, 0, 1, true).loss_weights, (Weights{2, 10, 0, 0, 0, 0, 2, 10, 0, 0, 0, 0}));
  EXPECT_EQ(OnlySamples(Example(), 11, 0, 2, true).loss_weights, (Weights{2, 10, 0, 0, 0, 0, 3, 15, 3, 0, 0, 0}));
  EXPECT_EQ(OnlySamples(Example(), 11, 0, 3, true).loss_weights, Example().loss_weights);
}

TEST(MicroBatches, SharesOfRealFamiliesKeepTheirWeights) {
  EXPECT_EQ(OnlySamples(Example(), 11, 1, 3, false).loss_weights, (Weights{2, 10, 0, 0, 0, 0, 0, 0, 4, 0, 4, 0}));
  EXPECT_DOUBLE_EQ(ShareFactor(Example(), 11, 1, 3), 8.0 / 32);
  EXPECT_DOUBLE_EQ(ShareFactor(Example(), 11, 0, 3), 1);
}

TEST(MicroBatches, TokensAreCountedByStepAndSample) {
  EXPECT_EQ(WeightedTokens(Example(), 10, 0, 3), 2);
  EXPECT_EQ(WeightedTokens(Example(), 11, 0, 3), 4);
  EXPECT_EQ(WeightedTokens(Example(), 11, 1, 1), 0);
}

TEST(MicroBatches, LabelsMoveAroundTheBatchAndNothingElseDoes) {
  const contract::Batches next = MovedLabels(Example(), 11, 1);
  EXPECT_EQ(next.labels, (Weights{100, 101, 102, 103, 104, 105, 108, 109, 110, 111, 106, 107}));
  EXPECT_EQ(MovedLabels(Example(), 11, -1).labels,
            (Weights{100, 101, 102, 103, 104, 105, 110, 111, 106, 107, 108, 109}));
  EXPECT_EQ(next.tokens, Example().tokens);
  EXPECT_EQ(next.loss_weights, Example().loss_weights);
}

TEST(MicroBatches, AStepTakesEverythingFromAnother) {
  const contract::Batches changed = WithStepOf(Example(), 11, 10);
  EXPECT_EQ(changed.tokens, (Weights{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(changed.loss_weights, (Weights{2, 10, 0, 0, 0, 0, 2, 10, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace plumbline::conformance
