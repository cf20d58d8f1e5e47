// SPDX-License-Identifier: Apache-2.0
// Training through OneCycle, whose rate and first beta are others in every step, against a plain loop.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "reference/engine/real_trainer.h"
#include "reference/optimizer/sgd.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_step.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kBatch = 4;

struct CycleStep {
  double lr;
  double beta1;
};

// Up in four steps and down in two, with rates from 1/64 to 3/64 and β₁ from 0.5 to 0.875, worked out by hand from
// docs/semantics.md; then min / (1 + 2 · (s − 6) / 4), which is 2/3 and 1/2 of it.
constexpr CycleStep kCycle[] = {
    {1.0 / 64, 0.5},      // β₁ is the least though σ is 0
    {1.5 / 64, 0.78125},  // σ = 1/4: (1 + 2 σ) / 64 and 0.875 − 0.375 σ
    {2.0 / 64, 0.6875},   // σ = 2/4
    {2.5 / 64, 0.59375},  // σ = 3/4
    {3.0 / 64, 0.5},      // σ = 1
    {2.0 / 64, 0.6875},   // σ = 1/2
    {1.0 / 64, 0.875},    // σ = 0, and still of the cycle
    {1.0 / 64 / 1.5, 0.875}, {1.0 / 128, 0.875},
};

contract::RunConfig OneCycleConfig(OptimizerKind optimizer) {
  contract::RunConfig config = RealConfig(optimizer, kBatch);
  config.params.lr = 0.5;
  config.params.weight_decay = 0.125;
  config.groups = {{"*.bias", 0.25, 0.0}};
  if (contract::HasBetas(optimizer))
    config.groups[0].betas = {0.125, 0.25};  // without effect while the cycle sets them
  config.schedule.kind = contract::Schedule::Kind::kOneCycle;
  contract::Cycle& cycle = config.schedule.cycle;
  cycle.min_lr = 1.0 / 64;
  cycle.max_lr = 3.0 / 64;
  cycle.first_steps = 4;
  cycle.second_steps = 2;
  cycle.decay_steps = 4;
  cycle.decay_lr_rate = 2;
  cycle.min_momentum = 0.5;
  cycle.max_momentum = 0.875;
  return config;
}

// One element of one tensor.
struct AdamWElement {
  double p;
  double m = 0;
  double v = 0;

  void Train(double g, const CycleStep& step, double beta2, double decay, int64_t t) {
    m = step.beta1 * m + (1 - step.beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(step.beta1, t));
    const double v_hat = v / (1 - std::pow(beta2, t));
    p = p * (1 - step.lr * decay) - step.lr * m_hat / (std::sqrt(v_hat) + 1e-8);
  }
};

// Infinite ones, which are equal, too.
bool Close(double a, double b) { return a == b || std::abs(a - b) <= 1e-12; }

// Runs kCycle with one step left out and holds every state after every step to AdamWElement.
void ExpectOneCycleOfAdamW(const contract::CaseData& data, int64_t skipped_step) {
  RealTrainer trainer(data);
  std::vector<std::vector<AdamWElement>> expected;
  for (const contract::RealParameterState& state : data.real_state)
    expected.emplace_back(state.master.begin(), state.master.end());
  int64_t t = 0;
  for (int64_t step = 0; step < std::ssize(kCycle); ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    RunStep(trainer, step);
    ASSERT_EQ(trainer.real()->skipped, step == skipped_step);
    ASSERT_EQ(trainer.real()->lr, (std::vector<double>{kCycle[step].lr, kCycle[step].lr / 2}));
    if (step != skipped_step) ++t;
    ASSERT_EQ(trainer.num_updates(), t);
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool bias = data.parameters[i].name.ends_with(".bias");
      const CycleStep of_group = {kCycle[step].lr / (bias ? 2 : 1), kCycle[step].beta1};
      for (size_t j = 0; j < expected[i].size(); ++j) {
        AdamWElement& element = expected[i][j];
        const auto at = [&](TensorKind kind) { return trainer.Of(kind)[i][static_cast<int64_t>(j)]; };
        if (step != skipped_step) element.Train(at(TensorKind::kGradient), of_group, 0.99, bias ? 0 : 0.125, t);
        ASSERT_TRUE(Close(at(TensorKind::kMoment), element.m)) << data.parameters[i].name;
        ASSERT_TRUE(Close(at(TensorKind::kSecondMoment), element.v)) << data.parameters[i].name;
        ASSERT_TRUE(Close(at(TensorKind::kMaster), element.p)) << data.parameters[i].name;
      }
    }
  }
}

// β₁ changes in every step of the cycle.
TEST(OneCycleTraining, GivesAdamWTheRateAndBetasOfEachStep) {
  constexpr int64_t kNone = -1;
  ExpectOneCycleOfAdamW(MakeRealCase(SmallGpt2(), OneCycleConfig(OptimizerKind::kAdamW), std::ssize(kCycle)), kNone);
}

TEST(OneCycleTraining, GoesOnThroughASkippedStepWhileTheBetasPowersDoNot) {
  contract::Gpt2Spec model = SmallGpt2();
  model.tied_head = false;
  for (const int64_t skipped : {0, 3}) {
    SCOPED_TRACE(testing::Message() << "skipped " << skipped);
    contract::CaseData data = MakeRealCase(model, OneCycleConfig(OptimizerKind::kAdamW), std::ssize(kCycle));
    PoisonStep(data, skipped);
    ExpectOneCycleOfAdamW(data, skipped);
  }
}

TEST(OneCycleTraining, LeavesSgdsMomentumAlone) {
  const contract::CaseData data = MakeRealCase(SmallGpt2(), OneCycleConfig(OptimizerKind::kSgd), std::ssize(kCycle));
  RealTrainer trainer(data);
  for (int64_t step = 0; step < std::ssize(kCycle); ++step) {
    const Tensors master = trainer.Of(TensorKind::kMaster);
    const Tensors moment = trainer.Of(TensorKind::kMoment);
    RunStep(trainer, step);
    EXPECT_EQ(trainer.real()->lr, (std::vector<double>{kCycle[step].lr, kCycle[step].lr / 2}));
    for (size_t i = 0; i < master.size(); ++i) {
      const bool bias = data.parameters[i].name.ends_with(".bias");
      const SgdMomentumResult expected = SgdMomentum(trainer.Of(TensorKind::kGradient)[i], moment[i], master[i],
                                                     step + 1, kCycle[step].lr / (bias ? 2 : 1), bias ? 0 : 0.125, 0.9,
                                                     /*nesterov=*/false);
      EXPECT_EQ(trainer.Of(TensorKind::kMoment)[i], expected.moment) << "step " << step;
      EXPECT_EQ(trainer.Of(TensorKind::kMaster)[i], expected.master) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace plumbline::reference
