// SPDX-License-Identifier: Apache-2.0
// The trainer of the real families through its seam, without LibTorch: gradients in fp64 against finite differences of
// the loss, updates against the document's formulas in plain doubles, groups, frozen and unused parameters,
// accumulation, clipping, skips.
#include "conformance/engines/torch_eager/real_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "conformance/engines/torch_eager/real_test_run.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::DType;
using contract::OptimizerKind;
using contract::TensorKind;

contract::RunConfig Config(OptimizerKind optimizer, DType storage = DType::kF32) {
  contract::RunConfig config;
  config.optimizer = optimizer;
  config.storage = storage;
  config.params.lr = 0.01;
  return config;
}

// Multiples of 2^-20, so that adding and subtracting kStride and twice kStride is exact in fp32.
constexpr float kStride = 1.0f / 4096;

void Quantise(CaseData& data) {
  for (contract::RealParameterState& state : data.real_state) {
    for (float& value : state.master) value = std::nearbyint(value * 1048576.0f) / 1048576.0f;
  }
}

// A fourth-order difference of the loss. Activations are about 0.03 here, so the error is some (kStride / 0.03)^4 / 30
// = 1e-10 of the gradient; eight times the stride shows it: 2e-7 where the gradient is 9e-3.
double Difference(CaseData& data, size_t tensor, size_t element) {
  float& value = data.real_state[tensor].master[element];
  const float center = value;
  const auto loss = [&](int strides) {
    value = center + static_cast<float>(strides) * kStride;
    const double result = RealTrainer(data).Forward(0, 0);
    value = center;
    return result;
  };
  return (8 * (loss(1) - loss(-1)) - (loss(2) - loss(-2))) / (12 * kStride);
}

void ExpectGradientsOfTheLoss(const contract::ModelSpec& model) {
  CaseData data = MakeRealCase(model, Config(OptimizerKind::kSgd, DType::kF64), /*steps=*/1, /*batch=*/2);
  Quantise(data);
  RealTrainer trainer(data);
  trainer.Forward(0, 0);
  trainer.Backward();
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const std::vector<double> gradient = Doubles(trainer.Values(TensorKind::kGradient, i));
    ASSERT_EQ(gradient.size(), static_cast<size_t>(data.parameters[i].frozen ? 0 : data.parameters[i].numel()));
    for (size_t e = 0; e < gradient.size(); e += 1 + gradient.size() / 12) {  // about a dozen elements each
      EXPECT_NEAR(gradient[e], Difference(data, i, e), 1e-9) << data.parameters[i].name << "[" << e << "]";
    }
  }
}

TEST(RealTrainer, GradientsAreDerivativesOfTheLossTied) { ExpectGradientsOfTheLoss(Tiny()); }

TEST(RealTrainer, GradientsAreDerivativesOfTheLossUntiedWithDropout) {
  contract::Gpt2Spec model = Tiny();
  model.tied_head = false;
  model.dropout = 0.3;
  model.norm_epsilon = 0.01;
  ExpectGradientsOfTheLoss(model);
}

TEST(RealTrainer, GradientsAreDerivativesOfTheLossOfLlamas) {
  ExpectGradientsOfTheLoss(TinyLlama());
  ExpectGradientsOfTheLoss(UnequalLlama());
}

// The document's loss of a model without layers worth speaking of: all weights zero but norms, hence equal logits.
TEST(RealTrainer, TheLossOfEqualLogitsIsTheLogarithmOfTheVocabulary) {
  CaseData data = MakeRealCase(Tiny(), Config(OptimizerKind::kSgd, DType::kF64), 1);
  for (contract::RealParameterState& state : data.real_state) std::fill(state.master.begin(), state.master.end(), 0);
  EXPECT_NEAR(RealTrainer(data).Forward(0, 0), std::log(11.0), 1e-12);
}

TEST(RealTrainer, AdamWFollowsTheDocumentFromTheMomentsOfTheCase) {
  contract::RunConfig config = Config(OptimizerKind::kAdamW, DType::kF64);
  config.params.beta1 = 0.8;
  config.params.beta2 = 0.95;
  config.params.eps = 1e-6;
  config.params.weight_decay = 0.1;
  for (const int64_t num_updates : {0, 3}) {
    CaseData data = MakeRealCase(Tiny(), config, 2);
    data.num_updates = num_updates;
    for (contract::RealParameterState& state : data.real_state) {
      std::fill(state.moment.begin(), state.moment.end(), 0.25f);
      std::fill(state.second_moment.begin(), state.second_moment.end(), 0.125f);
    }
    RealTrainer trainer(data);
    const size_t p = IndexOf(data, "layers.1.attn.qkv.weight");
    double m = 0.25, v = 0.125, master = data.real_state[p].master[4];
    for (int64_t step = 0; step < 2; ++step) {
      TrainStep(trainer, data, step);
      const double g = Doubles(trainer.Values(TensorKind::kGradient, p))[4];
      const auto t = static_cast<double>(num_updates + 1 + step);
      master *= 1 - 0.01 * 0.1;
      m = 0.8 * m + 0.2 * g;
      v = 0.95 * v + 0.05 * g * g;
      master -= 0.01 * (m / (1 - std::pow(0.8, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-6);
      EXPECT_NEAR(Doubles(trainer.Values(TensorKind::kMoment, p))[4], m, 1e-14);
      EXPECT_NEAR(Doubles(trainer.Values(TensorKind::kSecondMoment, p))[4], v, 1e-14);
      EXPECT_NEAR(Doubles(trainer.Values(TensorKind::kMaster, p))[4], master, 1e-14);
    }
  }
}

TEST(RealTrainer, SgdFollowsTheDocumentAndItsFirstBufferIsTheGradient) {
  contract::RunConfig config = Config(OptimizerKind::kSgd, DType::kF64);
  config.params.momentum = 0.5;
  config.params.weight_decay = 0.1;
  for (const int64_t num_updates : {0, 1}) {
    CaseData data = MakeRealCase(Tiny(), config, 2);
    data.num_updates = num_updates;
    for (auto& state : data.real_state) std::fill(state.moment.begin(), state.moment.end(), 0.25f);
    RealTrainer trainer(data);
    const size_t p = IndexOf(data, "layers.0.mlp.up.bias");
    double b = 0.25, master = data.real_state[p].master[2];
    for (int64_t step = 0; step < 2; ++step) {
      TrainStep(trainer, data, step);
      const double g = Doubles(trainer.Values(TensorKind::kGradient, p))[2] + 0.1 * master;
      b = num_updates + step == 0 ? g : 0.5 * b + g;
      master -= 0.01 * b;
      EXPECT_NEAR(Doubles(trainer.Values(TensorKind::kMoment, p))[2], b, 1e-14);
      EXPECT_NEAR(Doubles(trainer.Values(TensorKind::kMaster, p))[2], master, 1e-14);
    }
    EXPECT_EQ(trainer.Values(TensorKind::kSecondMoment, p).numel(), 0);
  }
}

TEST(RealTrainer, GroupsHaveTheirOwnRateAndDecayAndUnusedParametersOnlyDecay) {
  contract::RunConfig config = Config(OptimizerKind::kAdamW);
  config.params.weight_decay = 0.5;
  config.groups = {{"nothing.*", 7.0, 7.0}, {"*.bias", std::nullopt, 0.0}, {"unused.*", 0.25, 0.125}};
  contract::Gpt2Spec model = Tiny();
  model.unused = true;
  const CaseData data = MakeRealCase(model, config, 1);
  RealTrainer trainer(data);
  EXPECT_EQ(TrainStep(trainer, data, 0).lr, (std::vector<double>{0.01, 7, 0.01, 0.25}));
  const size_t unused = IndexOf(data, "unused.weight"), bias = IndexOf(data, "norm.bias");
  const std::vector<double> after = Doubles(trainer.Values(TensorKind::kMaster, unused));
  for (size_t e = 0; e < after.size(); ++e) {
    EXPECT_NEAR(after[e], data.real_state[unused].master[e] * (1 - 0.25 * 0.125), 1e-7);
    EXPECT_EQ(Doubles(trainer.Values(TensorKind::kGradient, unused))[e], 0);
  }
  // The first step of AdamW moves by lr in the direction of the sign; without decay by nothing else.
  const double g = Doubles(trainer.Values(TensorKind::kGradient, bias))[0];
  EXPECT_NEAR(Doubles(trainer.Values(TensorKind::kMaster, bias))[0],
              data.real_state[bias].master[0] - std::copysign(0.01, g), 1e-5);
}

TEST(RealTrainer, FrozenParametersStayAndHaveNoGradientAndNoState) {
  contract::RunConfig config = Config(OptimizerKind::kAdamW);
  config.params.weight_decay = 0.5;
  contract::Gpt2Spec model = Tiny();
  model.frozen = {"embed.weight", "layers.0.norm1.bias"};
  const CaseData data = MakeRealCase(model, config, 2);
  RealTrainer trainer(data);
  const double norm = TrainStep(trainer, data, 0).gradient_norm;
  double sum = 0;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    for (const double g : Doubles(trainer.Values(TensorKind::kGradient, i))) sum += g * g;
  }
  for (const std::string& name : model.frozen) {
    const size_t p = IndexOf(data, name);
    for (const TensorKind kind : {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kSecondMoment}) {
      EXPECT_EQ(trainer.Values(kind, p).numel(), 0);
    }
    const std::vector<double> after = Doubles(trainer.Values(TensorKind::kMaster, p));
    EXPECT_TRUE(std::equal(after.begin(), after.end(), data.real_state[p].master.begin()));
  }
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-12);
}

TEST(RealTrainer, TwoMicroBatchesAddUpToTheGlobalBatch) {
  contract::Gpt2Spec model = Tiny();
  model.dropout = 0.25;
  const CaseData one = MakeRealCase(model, Config(OptimizerKind::kSgd), 1, 6, 1);
  const CaseData two = MakeRealCase(model, Config(OptimizerKind::kSgd), 1, 6, 2);
  RealTrainer one_trainer(one), two_trainer(two);
  const double loss = one_trainer.Forward(0, 0);
  one_trainer.Backward();
  double sum = 0;
  for (const int64_t a : {0, 1}) {
    sum += two_trainer.Forward(0, a);
    two_trainer.Backward();
  }
  EXPECT_NEAR(sum, loss, 1e-6);
  for (size_t i = 0; i < one.parameters.size(); ++i) {
    const std::vector<double> a = Doubles(one_trainer.Values(TensorKind::kGradient, i));
    const std::vector<double> b = Doubles(two_trainer.Values(TensorKind::kGradient, i));
    for (size_t e = 0; e < a.size(); ++e) EXPECT_NEAR(a[e], b[e], 1e-6) << one.parameters[i].name;
  }
}

TEST(RealTrainer, ClippingScalesTheUpdateButNotTheReportedGradient) {
  contract::RunConfig config = Config(OptimizerKind::kSgd, DType::kF64);
  config.gradient_clipping = 0.0625;
  const CaseData data = MakeRealCase(Tiny(), config, 1);
  RealTrainer trainer(data);
  const double norm = TrainStep(trainer, data, 0).gradient_norm;
  ASSERT_GT(norm, 0.0625);
  double sum = 0;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const std::vector<double> g = Doubles(trainer.Values(TensorKind::kGradient, i));
    const std::vector<double> master = Doubles(trainer.Values(TensorKind::kMaster, i));
    for (size_t e = 0; e < g.size(); ++e) {
      sum += g[e] * g[e];
      EXPECT_NEAR(master[e], data.real_state[i].master[e] - 0.01 * g[e] * 0.0625 / (norm + 1e-6), 1e-14);
    }
  }
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-12);
}

TEST(RealTrainer, SkipsAStepWhoseGradientIsNotFinite) {
  contract::RunConfig config = Config(OptimizerKind::kAdamW);
  CaseData data = MakeRealCase(Tiny(), config, 1);
  data.num_updates = 5;
  const size_t p = IndexOf(data, "pos.weight");
  data.real_state[p].master[0] = std::numeric_limits<float>::infinity();
  RealTrainer trainer(data);
  const contract::RealStep report = TrainStep(trainer, data, 0);
  EXPECT_TRUE(report.skipped);
  EXPECT_FALSE(std::isfinite(report.gradient_norm));
  const std::vector<double> after = Doubles(trainer.Values(TensorKind::kMaster, p));
  EXPECT_TRUE(std::equal(after.begin(), after.end(), data.real_state[p].master.begin()));
}

// A normal fp16 number has 11 bits; below 2^-14 every number is a multiple of 2^-24.
TEST(RealTrainer, NarrowWeightsAreTheMasterWeightsRounded) {
  struct Narrow {
    DType storage;
    double relative, absolute;
  };
  for (const auto& [storage, relative, absolute] : {Narrow{DType::kBF16, 0x1p-9, 0}, {DType::kF16, 0x1p-12, 0x1p-25}}) {
    const CaseData data = MakeRealCase(Tiny(), Config(OptimizerKind::kAdamW, storage), 1);
    RealTrainer trainer(data);
    TrainStep(trainer, data, 0);
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const contract::HostTensor weight = trainer.Values(TensorKind::kWeight, i);
      EXPECT_EQ(weight.dtype, storage);
      EXPECT_EQ(trainer.Values(TensorKind::kGradient, i).dtype, DType::kF32);
      EXPECT_EQ(trainer.Values(TensorKind::kMaster, i).dtype, DType::kF32);
      const std::vector<double> w = Doubles(weight), master = Doubles(trainer.Values(TensorKind::kMaster, i));
      for (size_t e = 0; e < w.size(); ++e) {
        // Half the distance of two numbers, of which the lower may be as small as half of this one.
        EXPECT_NEAR(w[e], master[e], std::max(2 * relative * std::abs(master[e]), absolute));
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
