// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/activation_formula.h"

#include <gtest/gtest.h>

#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_llama.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

// One layer, width 3, one head, 5 positions, hidden 7, vocabulary 11; micro-batches of 2 samples: 10 tokens.
// fp32, bytes of a token: scratch 4 (12 + 5 + 7) + 12 = 108, streams 4 * 3 * 4 = 48, head 4 (3 + 22) = 100,
// attention 4 (18 + 12 + 10) = 160, MLP 4 (6 + 14) = 80: together 496.
TEST(ActivationBytes, OfExactAreTheSumByHand) {
  contract::Case spec = ExampleCase(2);
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * 496);
  spec.config.storage = contract::DType::kBF16;  // all but the 12 bytes of fp32 scratch are halved
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (496 - 12) / 2 + 10 * 12);
}

TEST(ActivationBytes, OfExactGrowWithEachLayerAndItsMasks) {
  contract::Case spec = ExampleCase(2);
  spec.model.exact().layers = 3;  // two more: streams 2 * 2 * 12, attention and MLP 2 * 240 for each token
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (496 + 48 + 480));
  spec.model.exact().dropout = true;  // two masks of a byte a channel in each layer, whatever the storage type
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (496 + 48 + 480 + 3 * 2 * 3));
}

TEST(ActivationBytes, OfExactCountKeysAndValuesOfFewerHeads) {
  contract::Case spec = ExampleCase(2);
  spec.model.exact().width = 6;
  spec.model.exact().heads = 6;
  spec.model.exact().kv_heads = 2;  // key/value width 2
  // Scratch 4 (24 + 30 + 7) + 24 = 268, streams 96, head 4 (6 + 22) = 112, attention 4 (36 + 8 + 60) = 416, MLP 104.
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (268 + 96 + 112 + 416 + 104));
}

TEST(ActivationBytes, DependOnTheMicroBatchAndNotOnTheWorld) {
  contract::Case spec = ExampleCase(2);
  spec.config.micro_batch_size = 1;
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 5 * 496);
  spec.config.data_degree = 97;
  spec.config.accumulation_steps = 7;
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 5 * 496);
}

// One layer, width 4, two heads, 5 positions, hidden 7, vocabulary 11; 10 tokens. fp32, bytes of a token:
// scratch 4 (36 + 7 + 10) + 4 (10 + 12) = 300, streams 4 * 4 * 4 = 64, head 32 + 8 + 44 = 84, attention
// 4 (20 + 10) + 8 = 128, MLP 4 (4 + 14) + 8 = 80: together 656.
TEST(ActivationBytes, OfGpt2AreTheSumByHand) {
  contract::Case spec = ExampleGpt2(2, 0);
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * 656);
  // Scratch 106 + 88, streams 32, head 16 + 8 + 44 and 22 for the gradient of the logits, attention 68, MLP 44.
  spec.config.storage = contract::DType::kBF16;
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (194 + 32 + 90 + 68 + 44));
}

TEST(ActivationBytes, OfGpt2WithDropoutKeepMasksAndDroppedProbabilities) {
  contract::Case spec = ExampleGpt2(2, 0);
  spec.model.gpt2().dropout = 0.25;  // masks: 4 of the embedding; of the layer 10 + 8; probabilities 4 * 10
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (656 + 4 + 18 + 40));
  spec.config.storage = contract::DType::kBF16;
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (428 + 4 + 18 + 20));
}

TEST(ActivationBytes, OfGpt2SizeTheSharedScratchByTheWiderOfProjectionAndMlp) {
  contract::Case spec = ExampleGpt2(2, 0);
  spec.model.gpt2().hidden = 13;  // above 3 * 4: scratch 236 + 92, MLP 128
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (328 + 64 + 84 + 128 + 128));
}

TEST(ActivationBytes, OfGpt2GrowWithEachLayerAndIgnoreWhatIsFrozenOrUntied) {
  contract::Case spec = ExampleGpt2(2, 0);
  spec.model.gpt2().layers = 3;
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (656 + 2 * (32 + 128 + 80)));
  spec.model.gpt2().frozen = {"embed.weight", "layers.2.mlp.up.bias"};
  spec.model.gpt2().tied_head = false;
  spec.model.gpt2().unused = true;
  EXPECT_EQ(ActivationBytes(spec.model, spec.config), 10 * (656 + 2 * (32 + 128 + 80)));
}

// One layer, width 12, three heads of 4 channels, one key head: key/value width 4; 5 positions, hidden 7, vocabulary
// 11; 10 tokens, and 5 x 4 angles' cosines and sines. fp32, bytes of a token: scratch 4 (36 + 8 + 14 + 15) + 4 (12 +
// 15) = 400, streams 4 * 12 * 4 = 192, head 96 + 4 + 44 = 144, attention 4 (36 + 8 + 15) + 4 = 240, MLP 4 (12 + 21) + 4
// = 136: together 1112.
TEST(ActivationBytes, OfLlamaAreTheSumByHand) {
  contract::RunConfig config;
  config.micro_batch_size = 2;
  EXPECT_EQ(ActivationBytes(ExampleLlama(), config), 10 * 1112 + 80);
  // Scratch 146 + 108, streams 96, head 48 + 4 + 44 and 22 for the gradient of the logits, attention 122, MLP 70.
  config.storage = contract::DType::kBF16;
  EXPECT_EQ(ActivationBytes(ExampleLlama(), config), 10 * (254 + 96 + 118 + 122 + 70) + 80);
}

TEST(ActivationBytes, OfLlamaWithDropoutKeepMasksAndDroppedProbabilities) {
  contract::RunConfig config;
  config.micro_batch_size = 2;
  contract::LlamaSpec model = ExampleLlama();
  model.dropout = 0.25;  // masks: 12 of the embedding; of the layer 15 + 24; probabilities 4 * 15
  EXPECT_EQ(ActivationBytes(model, config), 10 * (1112 + 12 + 39 + 60) + 80);
}

TEST(ActivationBytes, OfLlamaGrowWithLayersAndKeyHeadsAndIgnoreLengths) {
  contract::RunConfig config;
  config.micro_batch_size = 2;
  contract::LlamaSpec model = ExampleLlama();
  model.layers = 3;
  EXPECT_EQ(ActivationBytes(model, config), 10 * (1112 + 2 * (96 + 240 + 136)) + 80);
  model.layers = 1;
  model.kv_heads = 3;  // 8 channels more of a key and of a value, in scratch and in the layer
  EXPECT_EQ(ActivationBytes(model, config), 10 * (1112 + 4 * 16 + 4 * 16) + 80);
  model.kv_heads = 1;
  model.unequal_lengths = true;
  model.unused = true;
  EXPECT_EQ(ActivationBytes(model, config), 10 * 1112 + 80);
}

}  // namespace
}  // namespace plumbline::conformance
