// SPDX-License-Identifier: Apache-2.0
// Training under OneCycle, whose lr and beta1 move in every step, against the update of docs/semantics.md in plain
// loops. What the schedule says is a table here, worked out by hand: schedule_test.cc is for the formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/engines/torch_eager/real_test_run.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::OptimizerKind;
using contract::TensorKind;

// 1/64 + sigma / 16 up and down again; after the cycle (1/64) / (1 + 4 (s - 5) / 2). sigma is 0, 1/2, 1, 2/3, 1/3, 0.
constexpr double kRates[] = {1.0 / 64, 3.0 / 64, 5.0 / 64, 1.0 / 64 + 1.0 / 24, 1.0 / 64 + 1.0 / 48,
                             1.0 / 64, 1.0 / 192};
// 1/2 in step 0, then 7/8 - 3/8 sigma, 7/8 after the cycle.
constexpr double kBeta1[] = {0.5, 0.6875, 0.5, 0.625, 0.75, 0.875, 0.875};
constexpr int64_t kSteps = 7;
constexpr int64_t kSkipped = 2;

// In fp64, so that the loops of this file must agree to rounding. Biases train at twice the rate and decay not at all.
contract::RunConfig OneCycle(OptimizerKind optimizer) {
  contract::RunConfig config;
  config.optimizer = optimizer;
  config.storage = contract::DType::kF64;
  config.params = {.lr = 0.25, .beta1 = 0.125, .beta2 = 0.75, .eps = 1e-6, .weight_decay = 0.5, .momentum = 0.5};
  config.groups = {{"*.bias", 0.5, 0.0}};
  config.schedule.kind = contract::Schedule::Kind::kOneCycle;
  config.schedule.cycle = {.min_lr = 1.0 / 64,
                           .max_lr = 5.0 / 64,
                           .decay_lr_rate = 4,
                           .first_steps = 2,
                           .second_steps = 3,
                           .decay_steps = 2,
                           .min_momentum = 0.5,
                           .max_momentum = 0.875};
  return config;
}

// The embedding of token 7 is infinite, and only step kSkipped reads it.
CaseData CaseWithASkippedStep(OptimizerKind optimizer) {
  contract::Gpt2Spec model = Tiny();
  model.tied_head = false;
  CaseData data = MakeRealCase(model, OneCycle(optimizer), kSteps);
  data.real_state[0].master[7 * model.width] = std::numeric_limits<float>::infinity();
  std::replace(data.batches.tokens.begin(), data.batches.tokens.end(), 7, 3);
  data.batches.tokens[data.batches.Index(kSkipped, 0, 0)] = 7;
  return data;
}

// One element as a plain loop sees it.
struct Element {
  size_t parameter;
  size_t index;
  double group_factor;  // lr of its group / lr of the optimizer
  double decay;
  double master;
  double moment;
  double second_moment;
};

std::vector<Element> SomeElements(const CaseData& data) {
  std::vector<Element> elements;
  for (size_t p = 0; p < data.parameters.size(); ++p) {
    const bool bias = data.parameters[p].name.ends_with(".bias");
    const size_t index = p % data.parameters[p].numel();
    elements.push_back({p, index, bias ? 2.0 : 1.0, bias ? 0.0 : 0.5, data.real_state[p].master[index], 0, 0});
  }
  return elements;
}

void ExpectValue(const RealTrainer& trainer, TensorKind kind, const Element& element, double expected, int64_t step) {
  EXPECT_NEAR(Doubles(trainer.Values(kind, element.parameter))[element.index], expected, 1e-13)
      << "step " << step << ", tensor " << element.parameter;
}

void AdamWUpdate(Element& e, double g, double lr, double beta1, double t) {
  e.master *= 1 - lr * e.decay;
  e.moment = beta1 * e.moment + (1 - beta1) * g;
  e.second_moment = 0.99 * e.second_moment + 0.01 * g * g;
  e.master -=
      lr * (e.moment / (1 - std::pow(beta1, t))) / (std::sqrt(e.second_moment / (1 - std::pow(0.99, t))) + 1e-6);
}

// The skipped step moves the schedule but not t; bias corrections use the betas of the step.
TEST(RealSchedule, AdamWUnderOneCycleFollowsTheDocument) {
  const CaseData data = CaseWithASkippedStep(OptimizerKind::kAdamW);
  RealTrainer trainer(data);
  std::vector<Element> elements = SomeElements(data);
  double t = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const contract::RealStep report = TrainStep(trainer, data, step);
    ASSERT_EQ(report.lr.size(), 2u);
    EXPECT_DOUBLE_EQ(report.lr[0], kRates[step]) << step;
    EXPECT_DOUBLE_EQ(report.lr[1], 2 * kRates[step]) << step;
    EXPECT_EQ(report.skipped, step == kSkipped) << step;
    if (!report.skipped) ++t;
    for (Element& element : elements) {
      if (!report.skipped) {
        const double g = Doubles(trainer.Values(TensorKind::kGradient, element.parameter))[element.index];
        AdamWUpdate(element, g, kRates[step] * element.group_factor, kBeta1[step], t);
      }
      ExpectValue(trainer, TensorKind::kMoment, element, element.moment, step);
      ExpectValue(trainer, TensorKind::kSecondMoment, element, element.second_moment, step);
      ExpectValue(trainer, TensorKind::kMaster, element, element.master, step);
    }
  }
}

TEST(RealSchedule, SgdUnderOneCycleKeepsItsMomentum) {
  const CaseData data = CaseWithASkippedStep(OptimizerKind::kSgd);
  RealTrainer trainer(data);
  std::vector<Element> elements = SomeElements(data);
  for (int64_t step = 0; step < kSteps; ++step) {
    const contract::RealStep report = TrainStep(trainer, data, step);
    EXPECT_DOUBLE_EQ(report.lr.at(0), kRates[step]) << step;
    EXPECT_EQ(report.skipped, step == kSkipped) << step;
    for (Element& element : elements) {
      if (!report.skipped) {
        const double g = Doubles(trainer.Values(TensorKind::kGradient, element.parameter))[element.index];
        element.moment = 0.5 * element.moment + g + element.decay * element.master;
        element.master -= kRates[step] * element.group_factor * element.moment;
      }
      ExpectValue(trainer, TensorKind::kMoment, element, element.moment, step);
      ExpectValue(trainer, TensorKind::kMaster, element, element.master, step);
    }
  }
}

// A case that begins in the middle, with updates made before: step and t each go on from their own number.
TEST(RealSchedule, AResumedCaseIsWhereItsFirstStepIs) {
  CaseData data = MakeRealCase(Tiny(), OneCycle(OptimizerKind::kAdamW), /*steps=*/1);
  data.num_updates = 2;
  data.spec.first_step = data.batches.first_step = 4;
  for (contract::RealParameterState& state : data.real_state) {
    std::fill(state.moment.begin(), state.moment.end(), 0.25f);
    std::fill(state.second_moment.begin(), state.second_moment.end(), 0.125f);
  }
  RealTrainer trainer(data);
  EXPECT_DOUBLE_EQ(TrainStep(trainer, data, 4).lr.at(0), kRates[4]);
  for (Element& element : SomeElements(data)) {
    element.moment = 0.25;
    element.second_moment = 0.125;
    const double g = Doubles(trainer.Values(TensorKind::kGradient, element.parameter))[element.index];
    AdamWUpdate(element, g, kRates[4] * element.group_factor, kBeta1[4], /*t=*/3);
    ExpectValue(trainer, TensorKind::kMoment, element, element.moment, 4);
    ExpectValue(trainer, TensorKind::kMaster, element, element.master, 4);
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
