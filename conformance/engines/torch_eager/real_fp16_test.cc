// SPDX-License-Identifier: Apache-2.0
// The real families in fp16 through the trainer's seam, without LibTorch: gradients against those of fp64, whatever the
// loss scale, and what happens where the scale is too large or too small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "conformance/engines/torch_eager/real_test_run.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::DType;
using contract::TensorKind;

// A scale of 0 is dynamic.
CaseData MakeCase(const contract::ModelSpec& model, DType storage, int64_t loss_scale, int64_t accumulation = 1) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kAdamW;
  config.storage = storage;
  config.loss_scale = loss_scale;
  return MakeRealCase(model, config, /*steps=*/2, /*batch=*/6, accumulation);
}

std::vector<contract::ModelSpec> Models() {
  contract::Gpt2Spec untied = Tiny();
  untied.tied_head = false;
  untied.dropout = 0.3;
  return {Tiny(), untied, TinyLlama(), UnequalLlama()};
}

// Of all trained parameters, in canonical order.
using Gradients = std::vector<std::vector<double>>;

Gradients GradientsOf(const CaseData& data) {
  RealTrainer trainer(data);
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) {
    trainer.Forward(0, a);
    trainer.Backward();
  }
  Gradients gradients;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const contract::HostTensor gradient = trainer.Values(TensorKind::kGradient, i);
    if (!data.parameters[i].frozen) gradients.push_back(Doubles(gradient));
  }
  return gradients;
}

double NormOf(const Gradients& gradients) {
  double sum = 0;
  for (const std::vector<double>& gradient : gradients) {
    for (const double g : gradient) sum += g * g;
  }
  return std::sqrt(sum);
}

// ‖a − b‖ / ‖b‖.
double Distance(const Gradients& a, const Gradients& b) {
  Gradients difference = a;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t e = 0; e < a[i].size(); ++e) difference[i][e] -= b[i][e];
  }
  return NormOf(difference) / NormOf(b);
}

// About ten roundings one after the other forward and as many backward, of which each moves a number by 2^-13 of itself
// on average: their root mean square is some 2^-11. What has rounded nowhere, or to bf16, is below or above these.
constexpr double kLeast = 0x1p-12, kMost = 0x1p-9;

TEST(RealFp16, GradientsAreThoseOfFp64WithinRoundingsForAnyAccumulation) {
  for (const contract::ModelSpec& model : Models()) {
    const Gradients truth = GradientsOf(MakeCase(model, DType::kF64, 1));
    for (const int64_t accumulation : {1, 3}) {
      const double distance = Distance(GradientsOf(MakeCase(model, DType::kF16, 1 << 10, accumulation)), truth);
      EXPECT_GT(distance, kLeast) << model.family();
      EXPECT_LT(distance, kMost) << model.family();
    }
    EXPECT_LT(Distance(GradientsOf(MakeCase(model, DType::kF32, 1)), truth), kLeast) << model.family();
    EXPECT_GT(Distance(GradientsOf(MakeCase(model, DType::kBF16, 1)), truth), kMost) << model.family();
  }
}

// A power of two moves no rounding but those of numbers below 2^-14, whose share in the gradient is small here.
TEST(RealFp16, GradientsOfTwoScalesAreNearlyEqual) {
  for (const contract::ModelSpec& model : Models()) {
    const Gradients small = GradientsOf(MakeCase(model, DType::kF16, 1 << 9));
    EXPECT_LT(Distance(small, GradientsOf(MakeCase(model, DType::kF16, 1 << 12))), 0x1p-20) << model.family();
  }
}

// A final norm and a head so small that what passes through both is below 2^-25, which rounds to 0 in fp16.
CaseData MakeFaintCase(contract::ModelSpec model, DType storage, int64_t loss_scale) {
  CaseData data = MakeCase(model, storage, loss_scale);
  for (float& value : data.real_state[IndexOf(data, "norm.weight")].master) value *= 0x1p-14f;
  for (float& value : data.real_state[IndexOf(data, "head.weight")].master) value *= 0x1p-10f;
  return data;
}

TEST(RealFp16, WhatIsTooSmallVanishesWithoutAScaleAndIsThereWithOne) {
  for (const contract::ModelSpec& model : {Models()[1], Models()[2]}) {
    const CaseData faint = MakeFaintCase(model, DType::kF16, 1);
    const size_t first = IndexOf(faint, "embed.weight");
    const Gradients truth = {GradientsOf(MakeFaintCase(model, DType::kF64, 1)).at(first)};
    EXPECT_GT(NormOf(truth), 0) << model.family();
    EXPECT_EQ(NormOf({GradientsOf(faint).at(first)}), 0) << model.family();
    const Gradients scaled = {GradientsOf(MakeFaintCase(model, DType::kF16, 1 << 18)).at(first)};
    EXPECT_LT(Distance(scaled, truth), 0x1p-7) << model.family();
  }
}

// Nothing of the step is kept but the scaler.
TEST(RealFp16, AScaleOf2ToThe32ndSkipsTheStep) {
  for (const contract::ModelSpec& model : Models()) {
    CaseData data = MakeCase(model, DType::kF16, 0);
    data.loss_scaler = {0x1p32, 5, 2, 2};
    RealTrainer trainer(data);
    const contract::RealStep skipped = TrainStep(trainer, data, 0);
    EXPECT_TRUE(skipped.skipped);
    EXPECT_FALSE(std::isfinite(skipped.gradient_norm));
    EXPECT_EQ(skipped.loss_scaler, (contract::LossScaler{0x1p32, 6, 5, 1}));
    EXPECT_EQ(TrainStep(trainer, data, 1).loss_scaler, (contract::LossScaler{0x1p31, 7, 6, 1}));
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const std::vector<double> after = Doubles(trainer.Values(TensorKind::kMaster, i));
      EXPECT_TRUE(std::equal(after.begin(), after.end(), data.real_state[i].master.begin())) << model.family();
    }
  }
}

// The loss that is reported is not scaled, and the norm is that of gradients without the factor.
TEST(RealFp16, LossAndNormAreTheSameForADynamicScaleAsForAStaticOne) {
  CaseData fixed = MakeCase(TinyLlama(), DType::kF16, 1 << 12), dynamic = MakeCase(TinyLlama(), DType::kF16, 0);
  dynamic.loss_scaler.scale = 1 << 12;
  RealTrainer fixed_trainer(fixed), dynamic_trainer(dynamic);
  EXPECT_EQ(fixed_trainer.Forward(0, 0), dynamic_trainer.Forward(0, 0));
  EXPECT_NEAR(fixed_trainer.Forward(0, 0), std::log(11.0), 0.2);
  const contract::RealStep step = TrainStep(fixed_trainer, fixed, 0);
  EXPECT_EQ(step.gradient_norm, TrainStep(dynamic_trainer, dynamic, 0).gradient_norm);
  EXPECT_NEAR(step.gradient_norm, NormOf(GradientsOf(fixed)), 1e-12);
  EXPECT_FALSE(step.skipped);
  EXPECT_FALSE(step.loss_scaler.has_value());
}

// Each of three micro-batches has a gradient that fp16 holds with its factor, and their sum it would not hold.
TEST(RealFp16, MicroBatchesAddUpToWhatFp16CannotHold) {
  CaseData data = MakeCase(TinyLlama(), DType::kF16, 1, /*accumulation=*/3);
  // The same samples in each micro-batch.
  contract::Batches& batches = data.batches;
  const int64_t part = batches.Index(0, 2, 0) - batches.Index(0, 0, 0);
  for (std::vector<int32_t>* values : {&batches.tokens, &batches.labels, &batches.loss_weights}) {
    for (const int64_t copy : {1, 2}) std::copy_n(values->begin(), part, values->begin() + copy * part);
  }
  const auto largest = [&](const Gradients& gradients) {
    double found = 0;
    for (const std::vector<double>& gradient : gradients) {
      for (const double g : gradient) found = std::max(found, std::abs(g));
    }
    return found;
  };
  const Gradients small = GradientsOf(data);
  // The smallest scale with which the largest gradient is 2^16 or more: a third of it then is below 2^17 / 3.
  data.spec.config.loss_scale = int64_t{1} << static_cast<int>(std::ceil(std::log2(0x1p16 / largest(small))));
  EXPECT_LT(Distance(GradientsOf(data), small), kMost);
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
