// SPDX-License-Identifier: Apache-2.0
// The trainer over many steps: liveness, certificate, amplification of one unit, integrity of gradients.
#include "reference/engine/exact_trainer.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/contract/error.h"
#include "reference/testing/run_step.h"
#include "reference/testing/small_case.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::Perturbation;
using contract::TensorKind;

constexpr auto kMomentum = OptimizerKind::kModularMomentum;
constexpr auto kSgd = OptimizerKind::kModularSgd;

Tensors FinalWeights(const contract::CaseData& data) {
  ExactTrainer trainer(data);
  for (int64_t step = 0; step < data.spec.steps; ++step) RunStep(trainer, step);
  return trainer.Of(TensorKind::kWeight);
}

double ShareOfDifferentWeights(const Tensors& a, const Tensors& b) {
  int64_t different = 0;
  int64_t all = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t element = 0; element < a[i].numel(); ++element) different += a[i][element] != b[i][element] ? 1 : 0;
    all += a[i].numel();
  }
  return static_cast<double>(different) / static_cast<double>(all);
}

struct Amplification {
  const char* name;
  OptimizerKind optimizer;
  Perturbation perturbation;
};

class Amplifies : public testing::TestWithParam<Amplification> {};

// A unit in the master weight of ModularSGD stays unseen until it crosses a multiple of 8, with probability 1/8 a step:
// after 56 steps for 1 in 2,000 elements, so the run is as long as a real case.
TEST_P(Amplifies, OneUnitAtStepFourChangesMostWeightsByTheLastStep) {
  contract::CaseData data = MakeCase(kDense, GetParam().optimizer, 6, 60);
  const Tensors undisturbed = FinalWeights(data);
  data.spec.perturbation = GetParam().perturbation;
  EXPECT_GE(ShareOfDifferentWeights(undisturbed, FinalWeights(data)), 0.4);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Amplifies,
    testing::Values(Amplification{"gradient", kMomentum, {Perturbation::Kind::kGradient, "pos.weight", 3, 4, 1}},
                    Amplification{"moment", kMomentum, {Perturbation::Kind::kMoment, "layers.0.attn.k", 143, 4, 1}},
                    Amplification{"master", kMomentum, {Perturbation::Kind::kMaster, "layers.1.mlp.down", 0, 4, 1}},
                    Amplification{"weight", kMomentum, {Perturbation::Kind::kWeight, "embed.weight", 5, 4, 1}},
                    Amplification{"counter", kMomentum, {Perturbation::Kind::kCounter, "", 0, 4, 1}},
                    Amplification{"gradient_sgd", kSgd, {Perturbation::Kind::kGradient, "layers.1.attn.o", 17, 4, 1}},
                    Amplification{"master_sgd", kSgd, {Perturbation::Kind::kMaster, "embed.weight", 0, 4, 1}},
                    Amplification{"weight_sgd", kSgd, {Perturbation::Kind::kWeight, "layers.0.mlp.up", 1, 4, 1}}),
    [](const auto& info) { return info.param.name; });

TEST(ExactTrainer, GivesTheSameBitsInEveryRun) {
  const contract::CaseData data = MakeCase(kGroupedDropout, kMomentum, 6, 5);
  EXPECT_EQ(FinalWeights(data), FinalWeights(data));
  EXPECT_NE(FinalWeights(data), FinalWeights(MakeCase(kGroupedDropout, kSgd, 6, 5)));
}

TEST(ExactTrainer, UsesTheDropoutMaskOfTheStepAndTheSeed) {
  contract::CaseData data = MakeCase(kGroupedDropout, kMomentum, 6, 5);
  const Tensors weights = FinalWeights(data);
  data.spec.seed += uint64_t{1} << 40;
  EXPECT_GE(ShareOfDifferentWeights(weights, FinalWeights(data)), 0.4);
  data.spec.model.exact().dropout = false;
  const Tensors without = FinalWeights(data);
  data.spec.seed = 1;
  EXPECT_EQ(without, FinalWeights(data)) << "without dropout the seed is in the batches and the weights only";
}

TEST(ExactTrainer, NamesTensorElementAndStepOfAGradientThatIsNotAnInteger) {
  contract::CaseData data = MakeCase(kDense, kMomentum, 24, 3);
  // In step 1 one weight becomes one that N does not divide.
  for (int64_t i = data.batches.Index(1, 0, 0);; ++i) {
    int32_t& weight = data.batches.loss_weights[static_cast<size_t>(i)];
    if (weight != 0) {
      weight += 1;
      data.batches.labels[static_cast<size_t>(i)] = 0;
      break;
    }
  }
  ExactTrainer trainer(data);
  RunStep(trainer, 0);
  trainer.Forward(1);
  trainer.Backward();
  try {
    trainer.CheckGradient();
    FAIL() << "accepted";
  } catch (const contract::Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("embed.weight, element "), std::string::npos) << message;
    EXPECT_NE(message.find("step 1"), std::string::npos) << message;
  }
}

TEST(ExactTrainer, TheCounterIsOneInTheFirstStep) {
  const contract::CaseData data = MakeCase(kDense, kMomentum, 24, 1);
  ExactTrainer trainer(data);
  RunStep(trainer, 0);
  for (size_t i = 0; i < data.state.size(); ++i) {
    for (int64_t element = 0; element < trainer.Of(TensorKind::kGradient)[i].numel(); ++element) {
      const auto gradient = static_cast<int64_t>(trainer.Of(TensorKind::kGradient)[i][element]);
      const auto moment = static_cast<int64_t>(trainer.Of(TensorKind::kMoment)[i][element]);
      const auto master = static_cast<int64_t>(trainer.Of(TensorKind::kMaster)[i][element]);
      const int64_t start = data.state[i].master[static_cast<size_t>(element)];
      EXPECT_EQ((gradient + 1 - moment) % 29, 0);
      EXPECT_EQ((start - moment - 1 - master) % 24, 0);
    }
  }
}

}  // namespace
}  // namespace plumbline::reference
