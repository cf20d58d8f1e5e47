// SPDX-License-Identifier: Apache-2.0
// Family llama in the trainer of the real families: what of a case reaches its model, and what of its parameters the
// optimizer does. The rest of the trainer knows no model, and its tests are those with gpt2.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "reference/engine/real_trainer.h"
#include "reference/optimizer/adamw.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_step.h"
#include "reference/testing/small_llama.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kBatch = 4;

// As the case of the independent computation below.
contract::LlamaSpec MediumLlama() {
  contract::LlamaSpec model;
  model.layers = 2;
  model.width = 24;
  model.heads = 6;
  model.kv_heads = 2;
  model.positions = 16;
  model.hidden = 40;
  model.vocab = 61;
  model.unequal_lengths = true;
  return model;
}

// The first loss, computed from docs/semantics.md and docs/formats.md by a script of plain Python that shares no code
// with this engine: it read the case's files, left padding out, and drew the masks with a Philox of its own.
TEST(LlamaTraining, FirstLossIsThatOfAnIndependentComputationFromTheDocuments) {
  contract::LlamaSpec model = MediumLlama();
  const std::pair<double, double> rows[] = {{0, 4.126467910434768}, {0.1, 4.130579462909286}};
  for (const auto& [dropout, loss] : rows) {
    model.dropout = dropout;
    RealTrainer trainer(MakeRealCase(model, RealConfig(OptimizerKind::kAdamW, 12), 1));
    RunStep(trainer, 0);
    EXPECT_NEAR(trainer.loss(), loss, 1e-12) << "dropout " << dropout;
    EXPECT_EQ(trainer.num_weighted_tokens(), 36);
  }
}

TEST(LlamaTraining, UpdatesWhatIsNotFrozenFromTheStateOfTheCase) {
  contract::LlamaSpec model = SmallLlama();
  model.unequal_lengths = true;
  model.unused = true;
  model.frozen = {"embed.weight", "layers.0.attn.k.weight", "layers.1.norm2.weight"};
  contract::CaseData data = MakeRealCase(model, RealConfig(OptimizerKind::kAdamW, kBatch), 1, 40);
  data.num_updates = 37;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    for (size_t e = 0; e < data.real_state[i].moment.size(); ++e) {
      data.real_state[i].moment[e] = 0.001f * static_cast<float>(e % 7) - 0.003f;
      data.real_state[i].second_moment[e] = 1e-5f * static_cast<float>(1 + e % 5);
    }
  }
  RealTrainer trainer(data);
  const Tensors master = trainer.Of(TensorKind::kMaster);
  const Tensors moment = trainer.Of(TensorKind::kMoment);
  const Tensors second_moment = trainer.Of(TensorKind::kSecondMoment);
  RunStep(trainer, 40);
  EXPECT_EQ(trainer.num_updates(), 38);
  const contract::OptimizerParams& params = data.spec.config.params;
  double sum_squares = 0;
  for (size_t i = 0; i < master.size(); ++i) {
    const contract::ParameterSpec& parameter = data.parameters[i];
    SCOPED_TRACE(parameter.name);
    const Matrix& gradient = trainer.Of(TensorKind::kGradient)[i];
    if (parameter.frozen) {
      EXPECT_EQ(gradient.numel(), 0);
      EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i], master[i]);
      continue;
    }
    sum_squares += Inner(gradient, gradient);
    EXPECT_EQ(gradient == Matrix(parameter.rows, parameter.cols), parameter.name == "unused.weight");
    const AdamWResult expected =
        AdamW(gradient, moment[i], second_moment[i], master[i], 38, params.lr, params.weight_decay, params);
    EXPECT_EQ(trainer.Of(TensorKind::kMoment)[i], expected.moment);
    EXPECT_EQ(trainer.Of(TensorKind::kSecondMoment)[i], expected.second_moment);
    EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i], expected.master);
    EXPECT_NE(trainer.Of(TensorKind::kMaster)[i], master[i]);
  }
  EXPECT_NEAR(trainer.real()->gradient_norm, std::sqrt(sum_squares), 1e-14);
}

TEST(LlamaTraining, SkipsAStepWhoseGradientIsNotFinite) {
  contract::CaseData data = MakeRealCase(SmallLlama(), RealConfig(OptimizerKind::kAdamW, kBatch), 2);
  PoisonStep(data, 0);
  RealTrainer trainer(data);
  const Tensors master = trainer.Of(TensorKind::kMaster);
  RunStep(trainer, 0);
  EXPECT_TRUE(trainer.real()->skipped);
  EXPECT_EQ(trainer.Of(TensorKind::kMaster), master);
  RunStep(trainer, 1);
  EXPECT_FALSE(trainer.real()->skipped);
  EXPECT_EQ(trainer.num_updates(), 1);
}

// θ and ε of the case, the mask of the seed and the step: each changes the loss.
TEST(LlamaTraining, GivesTheModelAllOfTheCase) {
  const auto loss = [](const contract::LlamaSpec& model, uint64_t seed) {
    contract::CaseData data = MakeRealCase(model, RealConfig(OptimizerKind::kAdamW, kBatch), 1);
    data.spec.seed = seed;
    RealTrainer trainer(data);
    trainer.Forward(0);
    return trainer.loss();
  };
  contract::LlamaSpec model = SmallLlama();
  model.initializer_range = 0.5;
  model.dropout = 0.5;
  const double first = loss(model, 1);
  EXPECT_EQ(loss(model, 1), first);
  EXPECT_NE(loss(model, uint64_t{1} << 40), first);
  contract::LlamaSpec other = model;
  other.rope_theta = 101;
  EXPECT_NE(loss(other, 1), first);
  other = model;
  other.norm_epsilon = 1e-4;
  EXPECT_NE(loss(other, 1), first);
}

}  // namespace
}  // namespace plumbline::reference
