// SPDX-License-Identifier: Apache-2.0
// Whole cases of family llama, from folder to traces: the same bits for what must not change them, the padding behind
// samples of unequal lengths included, and the same training for every number of ranks within rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "conformance/contract/trace.h"
#include "optimized/engine/testing/case_run.h"
#include "optimized/engine/testing/real_case.h"
#include "optimized/engine/testing/same_bits.h"

namespace plumbline::optimized {
namespace {

using contract::CaseData;
using contract::DType;
using contract::OptimizerKind;
using testing::Combine;
using testing::Combined;
using testing::ExpectSameBits;
using testing::FirstDifference;
using testing::kSteps;
using testing::Layout;
using testing::LayoutsOfStages;
using testing::MakeRealCase;
using testing::RealOptions;
using testing::RunInFreshFolders;

constexpr auto kLlama = contract::Family::kLlama;
const std::vector<std::string> kFrozen = {"embed.weight", "layers.0.attn.k.weight", "layers.1.norm2.weight"};

std::vector<RealOptions> Variants() {
  return {{.family = kLlama},
          {.family = kLlama, .optimizer = OptimizerKind::kSgd, .clipping = 0, .kv_heads = 3, .frozen = kFrozen},
          {.family = kLlama, .optimizer = OptimizerKind::kLamb, .dropout = 0, .unequal_lengths = false},
          {.family = kLlama,
           .optimizer = OptimizerKind::kLion,
           .dropout = 0,
           .kv_heads = 3,
           .unused = false,
           .adaptive_clipping = testing::kUnitClipping},
          {.family = kLlama,
           .kv_heads = 3,
           .unequal_lengths = false,
           .frozen = {"unused.weight", "norm.weight", "head.weight"}}};
}

TEST(RunLlamaCase, EveryStageBucketAndLimitGivesTheSameBitsWithOneMicroBatch) {
  for (const RealOptions& options : Variants()) {
    for (const DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
      ExpectSameBits(LayoutsOfStages({0, 1, 2, 3}, 3, 1, storage), options);
    }
  }
}

// Stages 0 and 1 add a rank's micro-batches before the sum over ranks, 2 and 3 after it.
TEST(RunLlamaCase, StagesWithTheSameOrderOfSumsGiveTheSameBitsWithThreeMicroBatches) {
  for (const RealOptions& options : Variants()) {
    for (const DType storage : {DType::kF32, DType::kBF16}) {
      ExpectSameBits(LayoutsOfStages({0, 1}, 2, 3, storage), options);
      ExpectSameBits(LayoutsOfStages({2, 3}, 2, 3, storage), options);
    }
  }
}

TEST(RunLlamaCase, MoreRanksThanAlignmentUnitsOfATensorStillCover) {
  ExpectSameBits(LayoutsOfStages({0, 1, 2, 3}, 12, 1, DType::kF32), {.family = kLlama, .frozen = kFrozen});
}

// The last token of the vocabulary stands behind every end and nowhere else, and its row would make NaN what it
// touches.
TEST(RunLlamaCase, WhatIsBehindTheEndsOfSamplesChangesNoBit) {
  for (const Layout& layout : {Layout{1, 0, 1}, Layout{3, 3, 2, DType::kBF16, 200, {true, 0, 0, 0}}}) {
    CaseData data = MakeRealCase(layout, {.family = kLlama});
    std::ranges::replace(data.batches.tokens, 12, 0);
    for (int64_t i = 0; i < 12; ++i) data.real_state[0].master[12 * 12 + i] = INFINITY;
    const Combined expected = Combine(RunInFreshFolders(data), data);
    for (const double norm : expected.norms) EXPECT_TRUE(std::isfinite(norm));
    int64_t num_padding = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      for (int64_t sample = 0; sample < testing::kBatch; ++sample) {
        for (int64_t t = data.batches.Length(step, sample); t < data.batches.positions; ++t) {
          data.batches.tokens[data.batches.Index(step, sample, t)] = 12;
          data.batches.labels[data.batches.Index(step, sample, t)] = 12;
          ++num_padding;
        }
      }
    }
    EXPECT_GT(num_padding, 20);
    EXPECT_EQ(FirstDifference(Combine(RunInFreshFolders(data), data), expected), "");
  }
}

// Micro-batches are cut to other lengths in every layout.
TEST(RunLlamaCase, RanksAndMicroBatchesChangeNothingBeyondRounding) {
  for (const RealOptions& options : {RealOptions{.family = kLlama}, RealOptions{.family = kLlama, .kv_heads = 3}}) {
    const Combined one = RunThatMoves({}, options);
    for (const Layout& layout :
         {Layout{2, 0, 1}, Layout{1, 0, 3}, Layout{3, 2, 2}, Layout{4, 3, 3}, Layout{1, 0, 12}}) {
      const Combined other = RunThatMoves(layout, options);
      for (int64_t step = 0; step < kSteps; ++step) {
        EXPECT_NEAR(other.losses[step], one.losses[step], 1e-4 * one.losses[step]) << testing::Text(layout);
        EXPECT_NEAR(other.norms[step], one.norms[step], 1e-3 * one.norms[step]) << testing::Text(layout);
      }
      EXPECT_NEAR(other.losses[0], one.losses[0], 1e-6 * one.losses[0]) << testing::Text(layout);
      EXPECT_NEAR(other.norms[0], one.norms[0], 1e-5 * one.norms[0]) << testing::Text(layout);
    }
  }
}

TEST(RunLlamaCase, TheSameCaseTwiceGivesTheSameBitsAndAnotherSeedDoesNot) {
  const CaseData data = MakeRealCase({4, 3, 3, DType::kBF16, 200, {true, 300, 13, 800}}, {.family = kLlama});
  const Combined once = Combine(RunInFreshFolders(data), data);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(FirstDifference(Combine(RunInFreshFolders(data), data), once), "");
  CaseData other = data;
  other.spec.seed += 1;  // of the dropout masks: state and batches are in the case
  EXPECT_EQ(FirstDifference(Combine(RunInFreshFolders(other), other), once), "losses");
}

// The squares of row 12 of the embedding have no sum in float; it occurs in the last sample of step 1 only, hence on
// the last rank.
TEST(RunLlamaCase, AnOverflowOnOneRankSkipsThatStepOnAllRanksWithTheSameBitsInEveryStage) {
  std::optional<Combined> expected;
  for (const Layout& layout : LayoutsOfStages({0, 1, 2, 3}, 3, 1, DType::kF32)) {
    CaseData data = MakeRealCase(layout, {.family = kLlama});
    std::ranges::replace(data.batches.tokens, 12, 0);
    data.batches.tokens[data.batches.Index(1, testing::kBatch - 1, 0)] = 12;
    for (int64_t i = 0; i < 12; ++i) data.real_state[0].master[12 * 12 + i] = 3e38f;
    const auto out_dir = RunInFreshFolders(data);
    for (int64_t rank = 0; rank < 3; ++rank) {
      for (const contract::StepRecord& record : contract::ReadTrace(out_dir, rank).steps) {
        EXPECT_EQ(record.real->skipped, record.step == 1);
      }
    }
    const Combined combined = Combine(out_dir, data);
    if (!expected) expected = combined;
    EXPECT_EQ(FirstDifference(combined, *expected), "") << testing::Text(layout);
  }
}

}  // namespace
}  // namespace plumbline::optimized
