// SPDX-License-Identifier: Apache-2.0
// The whole model's gradient against central differences of the loss, and what semantics.md says about parts of it.
#include "reference/gpt2/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conformance/contract/error.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"
#include "reference/ops/block.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference::gpt2 {
namespace {

constexpr int64_t kSamples = 3;
constexpr uint64_t kSeed = 5;
constexpr int64_t kStep = 3;

// Heads divide the width; positions, hidden width and vocabulary are other primes.
contract::Gpt2Spec Spec(bool tied, double dropout) {
  contract::Gpt2Spec spec;
  spec.layers = 2;
  spec.width = 6;
  spec.heads = 3;
  spec.positions = 5;
  spec.hidden = 7;
  spec.vocab = 11;
  spec.tied_head = tied;
  spec.dropout = dropout;
  spec.unused = true;
  return spec;
}

// Weights far from their initial values, so that softmax, GELU and norms are all well away from their linear range.
ModelTensors Weights(const contract::Gpt2Spec& spec) {
  ModelTensors weights = TensorsFor(spec);
  const std::vector<Matrix*> order = InCanonicalOrder(weights);
  for (const contract::ParameterSpec& parameter : contract::Parameters(spec))
    *order.at(static_cast<size_t>(parameter.tensor_id)) =
        RandomReals(parameter.tensor_id, parameter.rows, parameter.cols, 0.8);
  return weights;
}

StepBatch Batch(const contract::Gpt2Spec& spec) {
  StepBatch batch;
  for (int64_t n = 0; n < kSamples * spec.positions; ++n) {
    batch.tokens.push_back((n * n + 1) % spec.vocab);
    batch.labels.push_back((3 * n + 2) % spec.vocab);
    batch.loss_weights.push_back(n % 3 == 1 ? 0 : 1);
  }
  return batch;
}

double Loss(const contract::Gpt2Spec& spec, const ModelTensors& weights, const StepBatch& batch) {
  return ModelForward({spec, kSeed, kStep}, weights, batch).loss.loss;
}

// dLoss/d(element of a parameter), from both sides.
double Difference(const contract::Gpt2Spec& spec, const ModelTensors& weights, const StepBatch& batch, size_t tensor,
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
  bool tied;
  double dropout;
};

class ModelGradient : public testing::TestWithParam<Setting> {};

TEST_P(ModelGradient, IsCentralDifferencesOfTheLossInEveryParameter) {
  const contract::Gpt2Spec spec = Spec(GetParam().tied, GetParam().dropout);
  const ModelTensors weights = Weights(spec);
  const StepBatch batch = Batch(spec);
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
                         testing::Values(Setting{"tied", true, 0}, Setting{"untied", false, 0},
                                         Setting{"tied_dropout", true, 0.3}, Setting{"untied_dropout", false, 0.3}),
                         [](const auto& info) { return info.param.name; });

TEST(Model, ATiedEmbeddingReceivesTheSumOfBothGradients) {
  const contract::Gpt2Spec tied = Spec(true, 0);
  const contract::Gpt2Spec untied = Spec(false, 0);
  const ModelTensors weights = Weights(tied);
  ModelTensors apart = Weights(untied);
  apart.head = weights.embed;
  const StepBatch batch = Batch(tied);
  const StepContext step{tied, kSeed, kStep};
  const StepContext step_apart{untied, kSeed, kStep};
  const ModelTensors sum = ModelBackward(step, weights, batch, ModelForward(step, weights, batch));
  const ModelTensors shares = ModelBackward(step_apart, apart, batch, ModelForward(step_apart, apart, batch));
  EXPECT_EQ(sum.embed, Plus(*shares.head, shares.embed));
  EXPECT_EQ(sum.layers[0].qkv.weight, shares.layers[0].qkv.weight);
}

TEST(Model, ATokenWithoutLossWeightTakesPartInAttention) {
  const contract::Gpt2Spec spec = Spec(true, 0);
  const ModelTensors weights = Weights(spec);
  StepBatch batch = Batch(spec);
  batch.loss_weights.assign(batch.loss_weights.size(), 0);
  batch.loss_weights[4] = 1;  // the last position of the first sample
  const double loss = Loss(spec, weights, batch);
  batch.labels[0] = (batch.labels[0] + 1) % spec.vocab;
  EXPECT_EQ(Loss(spec, weights, batch), loss) << "its label does not count";
  batch.tokens[0] = (batch.tokens[0] + 1) % spec.vocab;
  EXPECT_NE(Loss(spec, weights, batch), loss) << "its token does";
}

TEST(Model, NoTokenSeesALaterOneOrAnotherSample) {
  const contract::Gpt2Spec spec = Spec(true, 0);
  const ModelTensors weights = Weights(spec);
  StepBatch batch = Batch(spec);
  batch.loss_weights.assign(batch.loss_weights.size(), 0);
  batch.loss_weights[7] = 1;  // position 2 of the second sample
  const double loss = Loss(spec, weights, batch);
  for (const size_t other : {size_t{8}, size_t{9}, size_t{0}, size_t{4}, size_t{10}}) {
    batch.tokens[other] = (batch.tokens[other] + 1) % spec.vocab;
    EXPECT_EQ(Loss(spec, weights, batch), loss) << other;
  }
  batch.tokens[6] = (batch.tokens[6] + 1) % spec.vocab;
  EXPECT_NE(Loss(spec, weights, batch), loss);
}

// Swapping two heads' channels in Wqkv, bqkv and the rows of Wout changes nothing, if heads are contiguous blocks.
TEST(Model, HeadsAreContiguousBlocksOfChannelsInEachOfQueryKeyAndValue) {
  const contract::Gpt2Spec spec = Spec(true, 0);
  const ModelTensors weights = Weights(spec);
  ModelTensors swapped = weights;
  const int64_t width = spec.width;
  const int64_t head_width = spec.head_width();
  const auto swap = [](Matrix& matrix, const Block& a, const Block& b) {
    const Matrix before = matrix;
    Put(Take(before, a), b, matrix);
    Put(Take(before, b), a, matrix);
  };
  for (LayerTensors& layer : swapped.layers) {
    for (int64_t part = 0; part < 3; ++part) {
      const int64_t first = part * width;
      const int64_t second = first + head_width;
      swap(layer.qkv.weight, {0, first, width, head_width}, {0, second, width, head_width});
      swap(layer.qkv.bias, {0, first, 1, head_width}, {0, second, 1, head_width});
    }
    swap(layer.out.weight, {0, 0, head_width, width}, {head_width, 0, head_width, width});
  }
  const StepBatch batch = Batch(spec);
  EXPECT_NEAR(Loss(spec, swapped, batch), Loss(spec, weights, batch), 1e-12);
}

TEST(Model, DrawsEachDropoutMaskAtItsSiteLayerAndElement) {
  const contract::Gpt2Spec spec = Spec(true, 0.3);
  const StepContext step{spec, kSeed, kStep};
  const ModelTape tape = ModelForward(step, Weights(spec), Batch(spec));
  const uint32_t threshold = contract::DropThreshold(0.3);
  const auto kept = [&](contract::Site site, int64_t layer, int64_t element) {
    return contract::Draw(kSeed, site, kStep, layer, element) >= threshold ? 1.0 : 0.0;
  };
  for (int64_t sample = 0; sample < kSamples; ++sample) {
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
  const contract::Gpt2Spec spec = Spec(true, 0);
  StepBatch batch = Batch(spec);
  batch.loss_weights.assign(batch.loss_weights.size(), 0);
  EXPECT_THROW(Loss(spec, Weights(spec), batch), contract::Error);
}

TEST(Tensors, AreInTheContractsOrder) {
  for (const bool tied : {true, false}) {
    contract::Gpt2Spec spec = Spec(tied, 0);
    for (const bool unused : {true, false}) {
      spec.unused = unused;
      ModelTensors tensors = TensorsFor(spec);
      EXPECT_EQ(InCanonicalOrder(tensors).size(), contract::Parameters(spec).size());
    }
  }
  // The shape of each parameter fits its use, or the forward fails; two of equal shape are told apart here.
  const contract::Gpt2Spec spec = Spec(false, 0);
  ModelTensors weights = TensorsFor(spec);
  const std::vector<Matrix*> order = InCanonicalOrder(weights);
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(spec);
  const auto named = [&](const std::string& name) {
    for (const contract::ParameterSpec& parameter : parameters)
      if (parameter.name == name) return order[static_cast<size_t>(parameter.tensor_id)];
    return static_cast<Matrix*>(nullptr);
  };
  EXPECT_EQ(named("embed.weight"), &weights.embed);
  EXPECT_EQ(named("pos.weight"), &weights.pos);
  EXPECT_EQ(named("layers.1.norm1.weight"), &weights.layers[1].norm1.weight);
  EXPECT_EQ(named("layers.1.norm1.bias"), &weights.layers[1].norm1.bias);
  EXPECT_EQ(named("layers.1.attn.qkv.weight"), &weights.layers[1].qkv.weight);
  EXPECT_EQ(named("layers.1.attn.out.bias"), &weights.layers[1].out.bias);
  EXPECT_EQ(named("layers.0.norm2.weight"), &weights.layers[0].norm2.weight);
  EXPECT_EQ(named("layers.0.norm2.bias"), &weights.layers[0].norm2.bias);
  EXPECT_EQ(named("layers.0.mlp.up.weight"), &weights.layers[0].up.weight);
  EXPECT_EQ(named("layers.0.mlp.down.bias"), &weights.layers[0].down.bias);
  EXPECT_EQ(named("norm.weight"), &weights.norm.weight);
  EXPECT_EQ(named("norm.bias"), &weights.norm.bias);
  EXPECT_EQ(named("head.weight"), &*weights.head);
  EXPECT_EQ(named("unused.weight"), &*weights.unused);
}

}  // namespace
}  // namespace plumbline::reference::gpt2
