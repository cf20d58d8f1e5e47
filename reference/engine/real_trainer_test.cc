// SPDX-License-Identifier: Apache-2.0
// One step of a real family around the model: norm, clipping, schedule, groups, optimizers, skipping, injected state.
#include "reference/engine/real_trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/optimizer/adamw.h"
#include "reference/optimizer/sgd.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_step.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::Schedule;
using contract::TensorKind;

constexpr int64_t kBatch = 4;

size_t IndexOf(const contract::CaseData& data, const std::string& name) {
  for (size_t i = 0; i < data.parameters.size(); ++i)
    if (data.parameters[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

void ExpectNear(const Matrix& a, const Matrix& b, double relative) {
  ASSERT_TRUE(a.SameShape(b));
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a[i], b[i], relative * LargestMagnitude(b)) << i;
}

// Plain SGD of rate 1 without decay, whose update is the gradient that the optimizer consumed.
contract::RunConfig PlainSgd() {
  contract::RunConfig config = RealConfig(OptimizerKind::kSgd, kBatch);
  config.params = {};
  config.params.lr = 1;
  return config;
}

TEST(RealTrainer, StartsFromTheStateOfTheCaseAsAdamWDoesInMidTraining) {
  contract::CaseData data = MakeRealCase(SmallGpt2(), RealConfig(OptimizerKind::kAdamW, kBatch), 1, 40);
  data.num_updates = 37;
  for (contract::RealParameterState& state : data.real_state) {
    for (size_t i = 0; i < state.master.size(); ++i) {
      state.moment[i] = 0.001f * static_cast<float>(i % 7) - 0.003f;
      state.second_moment[i] = 1e-5f * static_cast<float>(1 + i % 5);
    }
  }
  RealTrainer trainer(data);
  const Tensors master = trainer.Of(TensorKind::kMaster);
  const Tensors moment = trainer.Of(TensorKind::kMoment);
  const Tensors second_moment = trainer.Of(TensorKind::kSecondMoment);
  for (size_t i = 0; i < master.size(); ++i)
    for (int64_t element = 0; element < master[i].numel(); ++element)
      ASSERT_EQ(master[i][element], static_cast<double>(data.real_state[i].master[static_cast<size_t>(element)]));
  RunStep(trainer, 40);
  EXPECT_EQ(trainer.num_updates(), 38);
  const contract::OptimizerParams& params = data.spec.config.params;
  for (size_t i = 0; i < master.size(); ++i) {
    const AdamWResult expected = AdamW(trainer.Of(TensorKind::kGradient)[i], moment[i], second_moment[i], master[i], 38,
                                       params.lr, params.weight_decay, params);
    EXPECT_EQ(trainer.Of(TensorKind::kMoment)[i], expected.moment);
    EXPECT_EQ(trainer.Of(TensorKind::kSecondMoment)[i], expected.second_moment);
    EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i], expected.master);
    EXPECT_NE(trainer.Of(TensorKind::kMaster)[i], master[i]);
  }
}

TEST(RealTrainer, SgdTakesTheGradientForTheMomentInTheFirstUpdateOnly) {
  for (const int64_t num_updates : {0, 3}) {
    contract::CaseData data = MakeRealCase(SmallGpt2(), RealConfig(OptimizerKind::kSgd, kBatch), 1, 3);
    data.num_updates = num_updates;
    for (contract::RealParameterState& state : data.real_state) state.moment.assign(state.master.size(), 0.25f);
    RealTrainer trainer(data);
    const Tensors master = trainer.Of(TensorKind::kMaster);
    RunStep(trainer, 3);
    for (size_t i = 0; i < master.size(); ++i) {
      const Matrix& moment = trainer.Of(TensorKind::kMoment)[i];
      for (int64_t element = 0; element < moment.numel(); ++element) {
        const double g = trainer.Of(TensorKind::kGradient)[i][element] + 0.01 * master[i][element];
        EXPECT_DOUBLE_EQ(moment[element], num_updates == 0 ? g : 0.9 * 0.25 + g);
      }
    }
  }
}

TEST(RealTrainer, DoesNotRoundTheWeightsToTheStorageType) {
  contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
  const auto weights = [&](contract::DType storage) {
    config.storage = storage;
    RealTrainer trainer(MakeRealCase(SmallGpt2(), config, 2));
    RunStep(trainer, 0);
    RunStep(trainer, 1);
    EXPECT_EQ(trainer.Of(TensorKind::kWeight), trainer.Of(TensorKind::kMaster));
    return trainer.Of(TensorKind::kWeight);
  };
  const Tensors values = weights(contract::DType::kF32);
  EXPECT_EQ(values, weights(contract::DType::kBF16));
  EXPECT_NE(values[0][0], static_cast<double>(static_cast<float>(values[0][0])));
}

TEST(RealTrainer, ClipsWhatTheOptimizerConsumesAndReportsNormAndGradientAsTheyWere) {
  contract::RunConfig config = PlainSgd();
  RealTrainer free(MakeRealCase(SmallGpt2(), config, 1));
  const Tensors start = free.Of(TensorKind::kMaster);
  RunStep(free, 0);
  const double norm = free.real()->gradient_norm;
  double sum_squares = 0;
  for (const Matrix& gradient : free.Of(TensorKind::kGradient)) sum_squares += Inner(gradient, gradient);
  EXPECT_NEAR(norm, std::sqrt(sum_squares), 1e-12 * norm);

  // Below, at and above the norm; at it, the epsilon shrinks the gradient a little.
  for (const double threshold : {norm / 8, norm, norm * 2}) {
    config.gradient_clipping = threshold;
    RealTrainer clipped(MakeRealCase(SmallGpt2(), config, 1));
    RunStep(clipped, 0);
    EXPECT_EQ(clipped.real()->gradient_norm, norm);
    EXPECT_EQ(clipped.Of(TensorKind::kGradient), free.Of(TensorKind::kGradient));
    const double factor = threshold > norm ? 1 : threshold / (norm + 1e-6);
    for (size_t i = 0; i < start.size(); ++i)
      ExpectNear(Minus(start[i], clipped.Of(TensorKind::kMaster)[i]),
                 Hadamard(free.Of(TensorKind::kGradient)[i],
                          Matrix(start[i].rows(), start[i].cols(),
                                 std::vector<double>(static_cast<size_t>(start[i].numel()), factor))),
                 1e-9);
    EXPECT_EQ(clipped.Of(TensorKind::kMaster) == free.Of(TensorKind::kMaster), threshold > norm);
  }
}

TEST(RealTrainer, TrainsEachGroupWithItsOwnRateAndDecay) {
  contract::RunConfig config = PlainSgd();
  config.groups = {{"*.bias", 0.5, std::nullopt}, {"layers.0.*", 0.25, 0.125}};
  const contract::CaseData data = MakeRealCase(SmallGpt2(), config, 1);
  RealTrainer trainer(data);
  const Tensors start = trainer.Of(TensorKind::kMaster);
  RunStep(trainer, 0);
  EXPECT_EQ(trainer.real()->lr, (std::vector<double>{1, 0.5, 0.25}));
  const struct {
    const char* name;
    double lr;
    double decay;
  } rows[] = {{"embed.weight", 1, 0},
              {"layers.0.attn.qkv.bias", 0.5, 0},
              {"layers.0.attn.qkv.weight", 0.25, 0.125},
              {"layers.1.mlp.up.weight", 1, 0},
              {"norm.bias", 0.5, 0}};
  for (const auto& row : rows) {
    const size_t i = IndexOf(data, row.name);
    EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i],
              Sgd(trainer.Of(TensorKind::kGradient)[i], start[i], row.lr, row.decay))
        << row.name;
  }
}

TEST(RealTrainer, AFrozenParameterHasNoGradientNoMomentsNoUpdateAndNoPartInTheNorm) {
  contract::Gpt2Spec model = SmallGpt2();
  const contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
  RealTrainer all(MakeRealCase(model, config, 1));
  model.frozen = {"embed.weight", "layers.1.mlp.up.bias"};
  const contract::CaseData data = MakeRealCase(model, config, 1);
  RealTrainer trainer(data);
  const Tensors start = trainer.Of(TensorKind::kMaster);
  RunStep(all, 0);
  RunStep(trainer, 0);
  double sum_squares = 0;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const bool frozen = data.parameters[i].frozen;
    for (const TensorKind kind : {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kSecondMoment})
      EXPECT_EQ(trainer.Of(kind)[i].numel(), frozen ? 0 : data.parameters[i].numel());
    EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i] == start[i], frozen) << data.parameters[i].name;
    if (frozen) continue;
    EXPECT_EQ(trainer.Of(TensorKind::kGradient)[i], all.Of(TensorKind::kGradient)[i]);
    sum_squares += Inner(trainer.Of(TensorKind::kGradient)[i], trainer.Of(TensorKind::kGradient)[i]);
  }
  EXPECT_NEAR(trainer.real()->gradient_norm, std::sqrt(sum_squares), 1e-14);
  EXPECT_LT(trainer.real()->gradient_norm, all.real()->gradient_norm);
}

TEST(RealTrainer, AnUnusedParameterHasAGradientOfZeroAndDecays) {
  contract::Gpt2Spec model = SmallGpt2();
  model.unused = true;
  contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
  config.params.lr = 0.5;
  config.params.weight_decay = 0.25;
  const contract::CaseData data = MakeRealCase(model, config, 1);
  RealTrainer trainer(data);
  const size_t unused = IndexOf(data, "unused.weight");
  const Matrix start = trainer.Of(TensorKind::kMaster)[unused];
  RunStep(trainer, 0);
  EXPECT_EQ(trainer.Of(TensorKind::kGradient)[unused], Matrix(3, 5));
  EXPECT_EQ(trainer.Of(TensorKind::kMoment)[unused], Matrix(3, 5));
  for (int64_t i = 0; i < start.numel(); ++i)
    EXPECT_EQ(trainer.Of(TensorKind::kMaster)[unused][i], start[i] * (1 - 0.5 * 0.25));
}

TEST(RealTrainer, SkipsAStepWhoseGradientIsNotFiniteAndLetsTheScheduleMoveOn) {
  contract::Gpt2Spec model = SmallGpt2();
  model.tied_head = false;
  contract::RunConfig config = RealConfig(OptimizerKind::kAdamW, kBatch);
  config.schedule = {Schedule::Kind::kWarmup, 0.001, 0.101, 10, true};
  contract::CaseData data = MakeRealCase(model, config, 3, 4);
  PoisonStep(data, 5);

  RealTrainer trainer(data);
  RunStep(trainer, 4);
  EXPECT_FALSE(trainer.real()->skipped);
  EXPECT_NEAR(trainer.real()->lr[0], 0.001 + 0.1 * 0.3, 1e-15);
  EXPECT_EQ(trainer.num_updates(), 1);
  const Tensors master = trainer.Of(TensorKind::kMaster);
  const Tensors moment = trainer.Of(TensorKind::kMoment);
  const Tensors second_moment = trainer.Of(TensorKind::kSecondMoment);

  RunStep(trainer, 5);
  EXPECT_TRUE(trainer.real()->skipped);
  EXPECT_FALSE(std::isfinite(trainer.real()->gradient_norm));
  EXPECT_FALSE(std::isfinite(trainer.loss()));
  EXPECT_EQ(trainer.num_updates(), 1);
  EXPECT_EQ(trainer.Of(TensorKind::kMaster), master);
  EXPECT_EQ(trainer.Of(TensorKind::kMoment), moment);
  EXPECT_EQ(trainer.Of(TensorKind::kSecondMoment), second_moment);
  EXPECT_NEAR(trainer.real()->lr[0], 0.001 + 0.1 * 0.4, 1e-15);

  RunStep(trainer, 6);
  EXPECT_FALSE(trainer.real()->skipped);
  EXPECT_EQ(trainer.num_updates(), 2);
  EXPECT_NEAR(trainer.real()->lr[0], 0.001 + 0.1 * 0.5, 1e-15);
  EXPECT_NE(trainer.Of(TensorKind::kMaster), master);
}

// Central differences cannot see a forward that is consistently another model's (k and v exchanged, say). These losses
// were computed from docs/semantics.md and docs/formats.md by a script of plain Python that shares no code with this
// engine: it read the case's files, and drew the masks with a Philox of its own.
TEST(RealTrainer, FirstLossIsThatOfAnIndependentComputationFromTheDocuments) {
  contract::Gpt2Spec model;
  model.layers = 2;
  model.width = 24;
  model.heads = 3;
  model.positions = 16;
  model.hidden = 96;
  model.vocab = 61;
  const std::pair<double, double> rows[] = {{0, 4.098558807839183}, {0.1, 4.091632912341075}};
  for (const auto& [dropout, loss] : rows) {
    model.dropout = dropout;
    RealTrainer trainer(MakeRealCase(model, RealConfig(OptimizerKind::kAdamW, 12), 1));
    RunStep(trainer, 0);
    EXPECT_NEAR(trainer.loss(), loss, 1e-12) << "dropout " << dropout;
    EXPECT_EQ(trainer.num_weighted_tokens(), 109);
  }
}

TEST(RealTrainer, CountsTokensWithLossWeight) {
  const contract::CaseData data = MakeRealCase(SmallGpt2(), RealConfig(OptimizerKind::kAdamW, kBatch), 1);
  int64_t sum = 0;
  for (const int32_t u : data.batches.loss_weights) sum += u;
  RealTrainer trainer(data);
  RunStep(trainer, 0);
  EXPECT_EQ(trainer.num_weighted_tokens(), sum);
  EXPECT_LT(sum, kBatch * data.batches.positions);
}

TEST(RealTrainer, UsesTheDropoutMaskOfTheSeedAndTheStep) {
  contract::Gpt2Spec model = SmallGpt2();
  model.dropout = 0.5;
  contract::CaseData data = MakeRealCase(model, RealConfig(OptimizerKind::kAdamW, kBatch), 1);
  const auto loss = [&] {
    RealTrainer trainer(data);
    trainer.Forward(data.batches.first_step);
    return trainer.loss();
  };
  const double first = loss();
  EXPECT_EQ(loss(), first);
  data.spec.seed += uint64_t{1} << 40;
  EXPECT_NE(loss(), first);
  data.spec.seed -= uint64_t{1} << 40;
  data.batches.first_step = 1;
  EXPECT_NE(loss(), first);
}

}  // namespace
}  // namespace plumbline::reference
