// SPDX-License-Identifier: Apache-2.0
// The whole model's gradient against central differences of the loss, where the masks are drawn, and the parameters'
// order.
#include "reference/llama/model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/small_llama.h"

namespace plumbline::reference::llama {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int64_t kStep = 3;
const std::vector<int64_t> kWhole = {5, 5, 5};
const std::vector<int64_t> kUnequal = {3, 5, 1};

double Loss(const contract::LlamaSpec& spec, const ModelTensors& weights, const StepBatch& batch) {
  return ModelForward({spec, kSeed, kStep}, weights, batch).loss.loss;
}

// dLoss/d(element of a parameter), from both sides.
double Difference(const contract::LlamaSpec& spec, const ModelTensors& weights, const StepBatch& batch, size_t tensor,
                  int64_t element) {
  ModelTensors moved = weights;
  Matrix& parameter = *InCanonicalOrder(moved)[tensor];
  const Matrix at = parameter;
  return CentralDifference(
      [&](const Matrix& value) {
        parameter = value;
        return Loss(spec, moved, batch);
      },
      at, element);
}

struct Setting {
  const char* name;
  int64_t kv_heads;
  double dropout;
  const std::vector<int64_t>& lengths;
};

class ModelGradient : public testing::TestWithParam<Setting> {};

TEST_P(ModelGradient, IsCentralDifferencesOfTheLossInEveryParameter) {
  contract::LlamaSpec spec = SmallLlama();
  spec.kv_heads = GetParam().kv_heads;
  spec.dropout = GetParam().dropout;
  spec.unused = true;
  const ModelTensors weights = RandomLlamaWeights(spec);
  const StepBatch batch = LlamaBatch(spec, GetParam().lengths);
  const StepContext step{spec, kSeed, kStep};
  ModelTensors gradients = ModelBackward(step, weights, batch, ModelForward(step, weights, batch));
  const std::vector<Matrix*> order = InCanonicalOrder(gradients);
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec);
  ASSERT_EQ(order.size(), parameters.size());
  for (size_t tensor = 0; tensor < order.size(); ++tensor) {
    SCOPED_TRACE(parameters[tensor].name);
    const Matrix& gradient = *order[tensor];
    ASSERT_EQ(gradient.rows(), parameters[tensor].rows);
    ASSERT_EQ(gradient.cols(), parameters[tensor].cols);
    const double largest = LargestMagnitude(gradient);
    if (parameters[tensor].name == "unused.weight") {
      EXPECT_EQ(largest, 0);
      continue;
    }
    EXPECT_GT(largest, 0);
    constexpr int64_t kElements = 8;
    for (int64_t draw = 0; draw < kElements; ++draw) {
      const uint32_t word = contract::Draw(9, contract::Site::kInitialWeight, 0, static_cast<int64_t>(tensor), draw);
      const int64_t element = contract::Below(word, gradient.numel());
      ExpectDerivative(gradient[element], Difference(spec, weights, batch, tensor, element), largest, element);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ModelGradient,
                         testing::Values(Setting{"grouped", 2, 0, kWhole}, Setting{"each_its_own", 4, 0, kWhole},
                                         Setting{"all_share_one", 1, 0, kUnequal},
                                         Setting{"grouped_dropout_unequal", 2, 0.3, kUnequal}),
                         [](const auto& info) { return info.param.name; });

TEST(Model, DrawsEachDropoutMaskAtItsSiteLayerAndElementWithPositionsCountedToTheirWholeNumber) {
  contract::LlamaSpec spec = SmallLlama();
  spec.dropout = 0.3;
  const StepContext step{spec, kSeed, kStep};
  const ModelTape tape = ModelForward(step, RandomLlamaWeights(spec), LlamaBatch(spec, kUnequal));
  const uint32_t threshold = contract::DropThreshold(0.3);
  const auto kept = [&](contract::Site site, int64_t layer, int64_t element) {
    return contract::Draw(kSeed, site, kStep, layer, element) >= threshold ? 1.0 : 0.0;
  };
  for (int64_t sample = 0; sample < 3; ++sample) {
    for (int64_t position = 0; position < spec.positions; ++position) {
      const int64_t n = sample * spec.positions + position;
      for (int64_t channel = 0; channel < spec.width; ++channel) {
        const int64_t element = n * spec.width + channel;
        EXPECT_EQ((*tape.mask)(n, channel), kept(contract::Site::kDropoutEmbedding, 0, element));
        EXPECT_EQ((*tape.attention[1].mask)(n, channel), kept(contract::Site::kDropoutAttentionOut, 1, element));
        EXPECT_EQ((*tape.mlp[1].mask)(n, channel), kept(contract::Site::kDropoutMlpOut, 1, element));
      }
      for (int64_t head = 0; head < spec.heads; ++head) {
        const HeadTape& entry = tape.attention[1].heads[static_cast<size_t>(sample * spec.heads + head)];
        for (int64_t key = 0; key < spec.positions; ++key) {
          const int64_t element = ((sample * spec.heads + head) * spec.positions + position) * spec.positions + key;
          EXPECT_EQ((*entry.mask)(position, key), kept(contract::Site::kDropoutScores, 1, element));
        }
      }
    }
  }
}

TEST(Model, RejectsAStepWithoutWeightedTokens) {
  const contract::LlamaSpec spec = SmallLlama();
  StepBatch batch = LlamaBatch(spec, kWhole);
  batch.loss_weights.assign(batch.loss_weights.size(), 0);
  EXPECT_THROW(Loss(spec, RandomLlamaWeights(spec), batch), contract::Error);
}

TEST(Tensors, AreInTheContractsOrder) {
  contract::LlamaSpec spec = SmallLlama();
  for (const bool unused : {false, true}) {
    spec.unused = unused;
    ModelTensors tensors = TensorsFor(spec);
    EXPECT_EQ(InCanonicalOrder(tensors).size(), contract::Parameters(spec).size());
  }
  ModelTensors weights = TensorsFor(spec);
  const std::vector<Matrix*> order = InCanonicalOrder(weights);
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec);
  const auto named = [&](const std::string& name) {
    for (const contract::ParameterSpec& parameter : parameters)
      if (parameter.name == name) return order[static_cast<size_t>(parameter.tensor_id)];
    return static_cast<Matrix*>(nullptr);
  };
  EXPECT_EQ(named("embed.weight"), &weights.embed);
  EXPECT_EQ(named("layers.1.norm1.weight"), &weights.layers[1].norm1);
  EXPECT_EQ(named("layers.1.attn.q.weight"), &weights.layers[1].q);
  EXPECT_EQ(named("layers.1.attn.k.weight"), &weights.layers[1].k);
  EXPECT_EQ(named("layers.1.attn.v.weight"), &weights.layers[1].v);
  EXPECT_EQ(named("layers.0.attn.out.weight"), &weights.layers[0].out);
  EXPECT_EQ(named("layers.0.norm2.weight"), &weights.layers[0].norm2);
  EXPECT_EQ(named("layers.0.mlp.gate.weight"), &weights.layers[0].gate);
  EXPECT_EQ(named("layers.0.mlp.up.weight"), &weights.layers[0].up);
  EXPECT_EQ(named("layers.0.mlp.down.weight"), &weights.layers[0].down);
  EXPECT_EQ(named("norm.weight"), &weights.norm);
  EXPECT_EQ(named("head.weight"), &weights.head);
  EXPECT_EQ(named("unused.weight"), &*weights.unused);
}

}  // namespace
}  // namespace plumbline::reference::llama
