// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/memory_formula.h"

#include <gtest/gtest.h>

#include <utility>

#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::OptimizerKind;
using Peaks = std::map<std::string, int64_t>;

// The example in one bucket: seven parameters padded to 32 elements and embed to 64, 288 together; 320 for two ranks.
// Its activations take 4960 bytes (activation_formula_test.cc).
contract::Case Example(int64_t world, int64_t stage) {
  contract::Case spec = ExampleCase(world, stage);
  spec.config.reduce_bucket_elems = 1000;
  spec.config.persistence_threshold_elems = 0;
  spec.config.prefetch_bucket_elems = 0;
  spec.config.max_live_elems = 0;
  return spec;
}

Peaks PeaksOf(const contract::Case& spec) { return ExpectedMemoryPeak(spec.model, spec.config); }

TEST(ExpectedMemoryPeak, OfStageZeroIsWholeOnEveryRank) {
  EXPECT_EQ(PeaksOf(Example(3, 0)), (Peaks{{"weights", 4 * 288},
                                           {"gathered_weights", 0},
                                           {"gradients", 4 * 288},
                                           {"optimizer_state", 8 * 288},
                                           {"communication", 0},
                                           {"activations", 4960}}));
}

TEST(ExpectedMemoryPeak, CountsThePaddingOfEveryBucket) {
  contract::Case spec = Example(2, 0);
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * 320);
  spec.config.reduce_bucket_elems = 20;  // six buckets of 64 (ledger_check_test.cc)
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * 384);
  EXPECT_EQ(PeaksOf(spec)["gradients"], 4 * 384);
}

TEST(ExpectedMemoryPeak, ShardsStateAndAddsItsPartOfTheGradientsFromStageOne) {
  for (int64_t stage : {1, 2}) {
    EXPECT_EQ(PeaksOf(Example(3, stage)), (Peaks{{"weights", 4 * 288},
                                                 {"gathered_weights", 0},
                                                 {"gradients", 4 * 288 + 4 * 96},
                                                 {"optimizer_state", 8 * 96},
                                                 {"communication", 0},
                                                 {"activations", 4960}}))
        << stage;
  }
}

// Three ranks pad the 288 elements of one bucket to 288; the groups of stage 3 to 192, 96 and 96.
TEST(ExpectedMemoryPeak, ReceivesLaterMicroBatchesApartFromStageTwo) {
  for (const auto& [stage, bytes] : {std::pair<int64_t, int64_t>{0, 0}, {1, 0}, {2, 4 * 96}, {3, 4 * 128}}) {
    contract::Case spec = Example(3, stage);
    EXPECT_EQ(PeaksOf(spec)["communication"], 0) << stage;
    spec.config.accumulation_steps = 2;
    EXPECT_EQ(PeaksOf(spec)["communication"], bytes) << stage;
  }
}

// Of 448 + 448 + 192 padded elements the first layer's are whole on each of the two ranks.
TEST(ExpectedMemoryPeak, OfLayersWithStagesOfTheirOwnIsTheSumOfTheirBuckets) {
  contract::Case spec = ExampleOfLayerStages(0, 3, 1, 1);
  Peaks peaks = PeaksOf(spec);
  EXPECT_EQ(peaks["weights"], 4 * (448 + 224 + 192));
  EXPECT_EQ(peaks["gathered_weights"], 4 * 448);
  EXPECT_EQ(peaks["gradients"], 4 * (1088 + 224 + 96));
  EXPECT_EQ(peaks["optimizer_state"], 3 * 4 * (448 + 224 + 96));
  EXPECT_EQ(peaks["communication"], 0);
  spec.config.accumulation_steps = 2;
  EXPECT_EQ(PeaksOf(spec)["communication"], 4 * 224);
}

TEST(ExpectedMemoryPeak, StoresOnlyWeightsAndActivationsInBf16) {
  contract::Case spec = Example(3, 1);
  spec.config.storage = DType::kBF16;
  EXPECT_EQ(PeaksOf(spec), (Peaks{{"weights", 2 * 288},
                                  {"gathered_weights", 0},
                                  {"gradients", 4 * 288 + 4 * 96},
                                  {"optimizer_state", 8 * 96},
                                  {"communication", 0},
                                  {"activations", 2540}}));
}

TEST(ExpectedMemoryPeak, HasNoMomentsUnderModularSgd) {
  contract::Case spec = Example(3, 1);
  spec.config.optimizer = OptimizerKind::kModularSgd;
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 4 * 96);
}

TEST(ExpectedMemoryPeak, GivesEveryRankAnAlignedPartWhereTheWorldIsLargerThanTheElements) {
  contract::Case spec = Example(97, 2);
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * 32 * 97);
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 8 * 32);
  spec.config.reduce_bucket_elems = 20;
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * 6 * 32 * 97);
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 8 * 6 * 32);
}

// Groups for two ranks: the layer 192, pos 64, embed 64. Uses: embedding, layer, head, head, layer.
TEST(ExpectedMemoryPeak, OfStageThreeHoldsWhatIsUsedAndNothingElse) {
  EXPECT_EQ(PeaksOf(Example(2, 3)), (Peaks{{"weights", 4 * 160},
                                           {"gathered_weights", 4 * 192},
                                           {"gradients", 4 * 320 + 4 * 160},
                                           {"optimizer_state", 8 * 160},
                                           {"communication", 0},
                                           {"activations", 4960}}));
}

TEST(ExpectedMemoryPeak, OfStageThreeGrowsWithWhatStaysAndWhatComesEarly) {
  const struct {
    int64_t prefetch, max_live, gathered_elems;
  } kTable[] = {
      {0, 110, 192},        // the layer's use
      {0, 111, 64 + 192},   // embed stays over the layer's use: 33 + 78 elements
      {77, 126, 64 + 192},  // the layer is larger than what may be gathered ahead
      {78, 125, 64 + 192},  // 15 + 33 + 78 are one too many during the embedding
      {78, 126, 64 + 64 + 192},
      {1'000'000, 1'000'000, 64 + 64 + 192},
      {1'000'000, 0, 192},
  };
  for (const auto& row : kTable) {
    contract::Case spec = Example(2, 3);
    spec.config.prefetch_bucket_elems = row.prefetch;
    spec.config.max_live_elems = row.max_live;
    EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * row.gathered_elems) << row.prefetch << " " << row.max_live;
    EXPECT_EQ(PeaksOf(spec)["weights"], 4 * 160);
    spec.config.storage = DType::kBF16;
    EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 2 * row.gathered_elems) << row.prefetch << " " << row.max_live;
  }
}

// Two layers of 192, pos 32, embed 64 for one rank. Uses: embedding, layers 0, 1, head, head, layers 1, 0. With 156
// live elements embed stays to the head and layer 1 to its backward, layer 0 does not.
TEST(ExpectedMemoryPeak, OfStageThreeCountsAGroupThatComesEarlyForItsBackward) {
  contract::Case spec = Example(1, 3);
  spec.model.exact().layers = 2;
  spec.config.max_live_elems = 156;
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * (64 + 192));
  spec.config.prefetch_bucket_elems = 78;  // layer 0 is gathered during the embedding, and again during layer 1
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * (192 + 192));
  spec.config.max_live_elems = 155;  // the latter no longer fits
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * (64 + 32 + 192));
}

TEST(ExpectedMemoryPeak, OfStageThreeKeepsPersistentParametersWhole) {
  contract::Case spec = Example(2, 3);
  spec.config.persistence_threshold_elems = 16;  // q, k, v, o and pos: 160, padded to 192; groups {down, up}, {embed}
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * (192 + (64 + 64) / 2));
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * 64);
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 8 * 320 / 2);
  spec.config.persistence_threshold_elems = 1000;
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * 320);
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 0);
}

TEST(ExpectedMemoryPeak, OfStageThreeWithOneRankGathersOnTopOfWholeWeights) {
  EXPECT_EQ(PeaksOf(Example(1, 3)), (Peaks{{"weights", 4 * 288},
                                           {"gathered_weights", 4 * 192},
                                           {"gradients", 8 * 288},
                                           {"optimizer_state", 8 * 288},
                                           {"communication", 0},
                                           {"activations", 4960}}));
}

// Without padding, with psi parameters on R ranks: the sums of the ZeRO paper (Rajbhandari et al. 2020, table 1) for
// fp32 training with one moment, plus the part of the gradients that this engine keeps beside the whole ones.
TEST(ExpectedMemoryPeak, WithoutPaddingIsTheTextbooksMultipleOfPsi) {
  contract::Case spec = Example(4, 0);
  spec.model.exact().width = spec.model.exact().hidden = 32;
  spec.model.exact().positions = spec.model.exact().vocab = 32;
  spec.config.reduce_bucket_elems = 1 << 20;
  spec.config.persistence_threshold_elems = 1 << 20;  // no gathers
  const int64_t psi = 8 * 32 * 32;
  const auto states = [&](int64_t stage) {
    spec.config.zero_stage = stage;
    const Peaks peaks = PeaksOf(spec);
    return peaks.at("weights") + peaks.at("gradients") + peaks.at("optimizer_state") + peaks.at("gathered_weights");
  };
  EXPECT_EQ(states(0), 16 * psi);
  EXPECT_EQ(states(1), 8 * psi + 12 * psi / 4);
  EXPECT_EQ(states(2), 8 * psi + 12 * psi / 4);
  EXPECT_EQ(states(3), 8 * psi + 12 * psi / 4);
  spec.config.persistence_threshold_elems = 0;  // the largest that is gathered at one time is a layer, 3/4 of psi
  EXPECT_EQ(states(3), 4 * psi + 16 * psi / 4 + 4 * psi * 3 / 4);
}

// The tied model in one bucket: 576 elements, for two and for three ranks; its activations take 6560 bytes.
TEST(ExpectedMemoryPeak, OfGpt2KeepsTwoMomentsUnderAdamW) {
  EXPECT_EQ(PeaksOf(ExampleGpt2(3, 0)), (Peaks{{"weights", 4 * 576},
                                               {"gathered_weights", 0},
                                               {"gradients", 4 * 576},
                                               {"optimizer_state", 12 * 576},
                                               {"communication", 0},
                                               {"activations", 6560}}));
  EXPECT_EQ(PeaksOf(ExampleGpt2(3, 2)), (Peaks{{"weights", 4 * 576},
                                               {"gathered_weights", 0},
                                               {"gradients", 4 * 576 + 4 * 192},
                                               {"optimizer_state", 12 * 192},
                                               {"communication", 0},
                                               {"activations", 6560}}));
}

TEST(ExpectedMemoryPeak, OfGpt2KeepsAMomentUnderSgdOnlyWithMomentum) {
  contract::Case spec = ExampleGpt2(3, 1);
  spec.config.optimizer = OptimizerKind::kSgd;
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 4 * 192);
  spec.config.params.momentum = 0.5;
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 8 * 192);
}

// Groups for two ranks: norm 64, layer 448, pos 64, embed 64; bf16.
TEST(ExpectedMemoryPeak, OfGpt2GathersLikeFamilyExact) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.config.storage = DType::kBF16;
  spec.config.accumulation_steps = 2;
  EXPECT_EQ(PeaksOf(spec), (Peaks{{"weights", 2 * 320},
                                  {"gathered_weights", 2 * 448},
                                  {"gradients", 4 * 640 + 4 * 320},
                                  {"optimizer_state", 12 * 320},
                                  {"communication", 4 * 320},
                                  {"activations", 4280}}));
  spec.config.max_live_elems = 1'000'000;  // everything stays from its first use on
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 2 * 640);
}

TEST(ExpectedMemoryPeak, OfGpt2HoldsTheUnusedParameterSharded) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().unused = true;
  spec.config.max_live_elems = spec.config.prefetch_bucket_elems = 1'000'000;
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * (640 + 64) / 2);
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * 640);
  EXPECT_EQ(PeaksOf(spec)["optimizer_state"], 12 * (640 + 64) / 2);
}

// embed, tied, and one bias: 64 and 32 elements that are in no bucket.
TEST(ExpectedMemoryPeak, OfGpt2HoldsFrozenWeightsWholeAndNothingElseOfThem) {
  contract::Case spec = ExampleGpt2(3, 0);
  spec.model.gpt2().frozen = {"norm.bias", "embed.weight"};
  for (const int64_t stage : {0, 1, 2}) {
    spec.config.zero_stage = stage;
    EXPECT_EQ(PeaksOf(spec)["weights"], 4 * (480 + 96)) << stage;
    EXPECT_EQ(PeaksOf(spec)["gradients"], 4 * 480 + (stage > 0 ? 4 * 160 : 0)) << stage;
    EXPECT_EQ(PeaksOf(spec)["optimizer_state"], stage > 0 ? 12 * 160 : 12 * 480) << stage;
  }
  spec.config.zero_stage = 3;  // three ranks: norm.weight 96, layer 480, pos 96
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * (672 / 3 + 96));
  EXPECT_EQ(PeaksOf(spec)["gathered_weights"], 4 * 480);
  spec.config.persistence_threshold_elems = 1000;
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * (480 + 96));
  spec.config.data_degree = 97;
  EXPECT_EQ(PeaksOf(spec)["weights"], 4 * (32 * 97 + 96));
}

}  // namespace
}  // namespace plumbline::conformance
