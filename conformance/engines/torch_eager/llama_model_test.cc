// SPDX-License-Identifier: Apache-2.0
// What the loss of a drawn llama does not show sharply, on models made for one question each: which channels a rotation
// pairs, which heads share keys and values, that padding is nothing, and where bf16 rounds. Through the trainer's seam,
// without LibTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "conformance/engines/torch_eager/plain_loss.h"
#include "conformance/engines/torch_eager/real_test_run.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::DType;
using contract::TensorKind;

constexpr double kPi = 3.14159265358979323846;

CaseData MakeCase(const contract::LlamaSpec& model, DType storage, int64_t batch) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kAdamW;
  config.storage = storage;
  return MakeRealCase(model, config, /*steps=*/1, batch);
}

std::vector<float>& Master(CaseData& data, const std::string& name) {
  return data.real_state[IndexOf(data, name)].master;
}

float& Element(CaseData& data, const std::string& name, int64_t row, int64_t col) {
  return Master(data, name)[row * data.parameters[IndexOf(data, name)].cols + col];
}

std::vector<double> Gradient(const CaseData& data, const std::string& name) {
  RealTrainer trainer(data);
  trainer.Forward(0, 0);
  trainer.Backward();
  return Doubles(trainer.Values(TensorKind::kGradient, IndexOf(data, name)));
}

double LargestInColumns(const std::vector<double>& matrix, int64_t cols, int64_t first, int64_t last) {
  double largest = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    const int64_t col = static_cast<int64_t>(i) % cols;
    if (col >= first && col < last) largest = std::max(largest, std::abs(matrix[i]));
  }
  return largest;
}

// Keys have one channel that is not zero: only the query channels that rotations mix with it get a gradient.
TEST(LlamaModel, RotationsPairAChannelWithTheOneHalfAHeadAway) {
  const contract::LlamaSpec model = {
      {.layers = 1, .width = 6, .heads = 1, .positions = 5, .hidden = 3, .vocab = 7, .frozen = {}}, /*kv_heads=*/1};
  for (int64_t key_channel = 0; key_channel < 6; ++key_channel) {
    CaseData data = MakeCase(model, DType::kF64, /*batch=*/2);
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t col = 0; col < 6; ++col) {
        if (col != key_channel) Element(data, "layers.0.attn.k.weight", row, col) = 0;
      }
    }
    const std::vector<double> gradient = Gradient(data, "layers.0.attn.q.weight");
    for (int64_t channel = 0; channel < 6; ++channel) {
      const bool is_paired = channel % 3 == key_channel % 3;
      EXPECT_EQ(LargestInColumns(gradient, 6, channel, channel + 1) > 0, is_paired) << channel << ", " << key_channel;
    }
  }
}

// One query head at a time reaches the output: only the key/value head that it reads gets a gradient.
TEST(LlamaModel, QueryHeadsReadTheKeyValueHeadOfTheirGroup) {
  const contract::LlamaSpec model = {
      {.layers = 1, .width = 24, .heads = 6, .positions = 5, .hidden = 3, .vocab = 7, .frozen = {}}, /*kv_heads=*/3};
  const int64_t channels = 4, theirs[] = {0, 0, 1, 1, 2, 2};
  for (int64_t head = 0; head < 6; ++head) {
    CaseData data = MakeCase(model, DType::kF64, /*batch=*/2);
    for (int64_t row = 0; row < 24; ++row) {
      if (row / channels == head) continue;
      for (int64_t col = 0; col < 24; ++col) Element(data, "layers.0.attn.out.weight", row, col) = 0;
    }
    for (const char* name : {"layers.0.attn.k.weight", "layers.0.attn.v.weight"}) {
      const std::vector<double> gradient = Gradient(data, name);
      for (int64_t kv_head = 0; kv_head < 3; ++kv_head) {
        const double largest = LargestInColumns(gradient, 12, kv_head * channels, (kv_head + 1) * channels);
        EXPECT_EQ(largest > 0, kv_head == theirs[head]) << name << ", " << head << ", " << kv_head;
      }
    }
  }
}

// Every position behind a sample's length, of both arrays.
template <typename Edit>
void EditPadding(CaseData& data, const Edit& edit) {
  contract::Batches& batches = data.batches;
  for (int64_t b = 0; b < batches.batch; ++b) {
    for (int64_t t = batches.Length(0, b); t < batches.positions; ++t) {
      edit(batches.tokens[batches.Index(0, b, t)]);
      edit(batches.labels[batches.Index(0, b, t)]);
    }
  }
}

// All bits after a step.
std::vector<std::vector<std::byte>> BitsAfterAStep(const CaseData& data, double& loss) {
  RealTrainer trainer(data);
  loss = trainer.Forward(0, 0);
  trainer.Backward();
  const contract::RealStep report = trainer.Update(0);
  EXPECT_FALSE(report.skipped);
  std::vector<std::vector<std::byte>> bits;
  for (const TensorKind kind : contract::kTensorKinds) {
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      bits.push_back(trainer.Values(kind, i).data);
    }
  }
  return bits;
}

TEST(LlamaModel, WhatIsInPaddingChangesNoBit) {
  for (const DType storage : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    CaseData data = MakeCase(UnequalLlama(), storage, /*batch=*/6);
    ASSERT_LT(*std::min_element(data.batches.lengths.begin(), data.batches.lengths.end()), data.batches.positions);
    double loss = 0, other_loss = 0;
    const auto bits = BitsAfterAStep(data, loss);
    EditPadding(data, [](int32_t& value) { value = (value + 5) % 11; });
    EXPECT_TRUE(BitsAfterAStep(data, other_loss) == bits) << Name(storage);
    EXPECT_EQ(loss, other_loss);
  }
}

// A token that is in padding only is one that the step does not use, whatever its row of the embedding holds.
TEST(LlamaModel, ARowOfTheEmbeddingThatOnlyPaddingNamesIsNotRead) {
  contract::LlamaSpec model = UnequalLlama();
  model.vocab = 200;  // the text has no byte as large as the last tokens
  CaseData data = MakeCase(model, DType::kF32, /*batch=*/6);
  double loss = 0, other_loss = 0;
  BitsAfterAStep(data, loss);
  EditPadding(data, [](int32_t& value) { value = 199; });
  for (int64_t c = 0; c < model.width; ++c) {
    Element(data, "embed.weight", 199, c) = std::numeric_limits<float>::infinity();
  }
  BitsAfterAStep(data, other_loss);
  EXPECT_EQ(loss, other_loss);
}

// A model of one head of four channels whose numbers are powers of two. Tokens 0 and 1 are h = (1, 1, +-1, +-1) behind
// the norm, their values +-1, and the label 0 costs log(1 + exp(-4 y)) with y = +-1 + 2 o in the last channel, normed.
contract::LlamaSpec OneHead(int64_t positions, double rope_theta) {
  contract::LlamaSpec model = {
      {.layers = 1, .width = 4, .heads = 1, .positions = positions, .hidden = 1, .vocab = 2, .frozen = {}},
      /*kv_heads=*/1};
  model.rope_theta = rope_theta;
  return model;
}

CaseData MakeOneHeadCase(const contract::LlamaSpec& model, DType storage) {
  CaseData data = MakeCase(model, storage, /*batch=*/1);
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    std::vector<float>& master = data.real_state[i].master;
    std::fill(master.begin(), master.end(), data.parameters[i].is_vector ? 1.0f : 0.0f);
  }
  Master(data, "embed.weight") = {1, 1, 1, 1, 1, 1, -1, -1};
  Element(data, "layers.0.attn.v.weight", 2, 0) = 1;
  Element(data, "layers.0.attn.out.weight", 0, 3) = 2;
  Element(data, "head.weight", 0, 3) = 2;
  Element(data, "head.weight", 1, 3) = -2;
  std::fill(data.batches.labels.begin(), data.batches.labels.end(), 0);
  std::fill(data.batches.loss_weights.begin(), data.batches.loss_weights.end(), 0);
  return data;
}

// The loss of the last position where it attends to others with these scores and values +-1.
double LossOfLast(const std::vector<double>& scores, const std::vector<int32_t>& tokens) {
  double total = 0, o = 0;
  for (size_t t = 0; t < scores.size(); ++t) {
    total += std::exp(scores[t]);
    o += std::exp(scores[t]) * (tokens[t] == 0 ? 1 : -1);
  }
  const double last = (tokens.back() == 0 ? 1 : -1) + 2 * o / total;
  return std::log1p(std::exp(-4 * last / std::sqrt((3 + last * last) / 4)));
}

// How far bf16 may move a loss of this model: the last channel behind the norm, at most 2, is rounded to within 2^-8,
// and its slope of 4 makes that 0.016; scores, attention weights and results add no more than as much again each. fp16
// has three more bits.
constexpr double kBound = 0.05;
struct Narrow {
  DType storage;
  double bound;
};
constexpr Narrow kNarrow[] = {{DType::kBF16, kBound}, {DType::kF16, kBound / 8}};

// Angles up to 201 * 0.7 = 141, where bf16 numbers are whole and fp16's eighths: rounded angles would be up to half a
// radian or a sixteenth off, and each of these losses by more than 1 or, in fp16, by 0.05.
TEST(LlamaModel, NarrowStorageHasAnglesOfFp32) {
  const double angle = 0.7;
  for (const auto& [storage, bound] : kNarrow) {
    for (const int64_t last : {144, 174, 198, 201}) {
      CaseData data = MakeOneHeadCase(OneHead(/*positions=*/202, 1 / (angle * angle)), storage);
      Element(data, "layers.0.attn.q.weight", 0, 1) = 2;
      Element(data, "layers.0.attn.k.weight", 0, 1) = 8;
      std::vector<int32_t>& tokens = data.batches.tokens;
      for (size_t t = 0; t < tokens.size(); ++t) tokens[t] = t % 3 == 0 ? 1 : 0;
      data.batches.loss_weights[last] = 1;
      std::vector<double> scores;
      for (int64_t t = 0; t <= last; ++t) scores.push_back(8 * std::cos(angle * static_cast<double>(last - t)));
      EXPECT_NEAR(WitnessLoss(data, 0), LossOfLast(scores, {tokens.begin(), tokens.begin() + last + 1}), bound)
          << Name(storage) << ", " << last;
    }
  }
}

// A query of (0, 8, 0, 8) turned by a little less than a quarter of pi: 8 cos - 8 sin nearly cancels, to 0.034.
// Products, cosines or sines in bf16 would be off by 0.016 each, and the score of 2.2 by 1; in fp16 by an eighth of it.
TEST(LlamaModel, NarrowStorageRoundsWhatIsTurnedOnce) {
  const double angle = kPi / 4 - 0.003;
  for (const auto& [storage, bound] : kNarrow) {
    CaseData data = MakeOneHeadCase(OneHead(/*positions=*/2, 1 / (angle * angle)), storage);
    for (const int64_t channel : {1, 3}) Element(data, "layers.0.attn.q.weight", 0, channel) = 8;
    Element(data, "layers.0.attn.k.weight", 0, 1) = 64;
    Element(data, "layers.0.attn.k.weight", 2, 1) = -64;  // a key of 128 for token 1, none for token 0
    data.batches.tokens = {1, 0};
    data.batches.loss_weights[1] = 1;
    const double score = 8 * (std::cos(angle) - std::sin(angle)) * 128 / 2;
    EXPECT_NEAR(WitnessLoss(data, 0), LossOfLast({score, 0}, {1, 0}), bound) << Name(storage);
  }
}

// The loss of every token of a model without layers worth speaking of, whose rows of the embedding have equal channels.
std::vector<double> LossesOfEqualChannels(DType storage) {
  contract::LlamaSpec model = OneHead(/*positions=*/1, 10000);
  model.vocab = 64;
  CaseData data = MakeCase(model, storage, /*batch=*/1);
  for (const char* name : {"layers.0.attn.out.weight", "layers.0.mlp.down.weight"}) {
    std::fill(Master(data, name).begin(), Master(data, name).end(), 0);
  }
  std::fill(Master(data, "norm.weight").begin(), Master(data, "norm.weight").end(), 1);
  for (float& value : Master(data, "head.weight")) value *= 100;
  std::fill(data.batches.loss_weights.begin(), data.batches.loss_weights.end(), 1);
  std::vector<double> losses;
  for (int32_t token = 0; token < 64; ++token) {
    for (int64_t c = 0; c < 4; ++c) Element(data, "embed.weight", token, c) = 1 + static_cast<float>(token) / 64;
    data.batches.tokens = {token};
    data.batches.labels = {0};
    losses.push_back(WitnessLoss(data, 0));
  }
  return losses;
}

// Behind its norm a row of equal channels is all ones, whatever it was, so every token has the same loss. Statistics in
// bf16 would be off by up to 1/256 of that, in fp16 by up to 1/2048.
TEST(LlamaModel, NarrowStorageHasStatisticsOfFp32) {
  for (const auto& [storage, bound] : kNarrow) {
    const std::vector<double> losses = LossesOfEqualChannels(storage);
    for (const double loss : losses) EXPECT_EQ(loss, losses[0]) << Name(storage);
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
