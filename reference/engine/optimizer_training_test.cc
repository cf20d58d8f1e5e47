// SPDX-License-Identifier: Apache-2.0
// Training by each optimizer: the trainer gives each parameter's update the gradient, the state, the count of updates
// and the settings of the parameter's group. What an update computes is tested in reference/optimizer.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/engine/real_trainer.h"
#include "reference/optimizer/parameter_update.h"
#include "reference/testing/real_case.h"
#include "reference/testing/run_step.h"

namespace plumbline::reference {
namespace {

using contract::OptimizerKind;
using contract::TensorKind;

constexpr int64_t kBatch = 4;
constexpr int64_t kFirst = 40;
constexpr int64_t kUpdates = 37;

contract::Gpt2Spec Model() {
  contract::Gpt2Spec model = SmallGpt2();
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"pos.weight", "layers.0.norm2.bias"};
  return model;
}

// Groups: the default one, biases, what else is in layer 1. No setting of one is another's or a default.
contract::RunConfig Config(OptimizerKind optimizer) {
  contract::RunConfig config = RealConfig(optimizer, kBatch);
  config.params.lr = 0.03125;
  config.params.beta1 = 0.75;
  config.params.beta2 = 0.875;
  config.params.eps = 0.0625;
  config.params.weight_decay = 0.25;
  config.groups = {{"*.bias", 0.0625, 0.125}, {"layers.1.*", 0.015625, 0.5}};
  if (!contract::HasBetas(optimizer)) return config;
  config.groups[0].betas = {0.5, 0.625};
  config.groups[1].betas = {0.25, 0.9375};
  return config;
}

contract::CaseData InMidTraining(const contract::RunConfig& config, int64_t steps) {
  contract::CaseData data = MakeRealCase(Model(), config, steps, kFirst);
  data.num_updates = kUpdates;
  for (contract::RealParameterState& state : data.real_state) {
    for (size_t i = 0; i < state.moment.size(); ++i) state.moment[i] = 0.001f * static_cast<float>(i % 7) - 0.003f;
    for (size_t i = 0; i < state.second_moment.size(); ++i)
      state.second_moment[i] = 1e-5f * static_cast<float>(1 + i % 5);
  }
  return data;
}

ParameterState StateOf(const RealTrainer& trainer, size_t parameter) {
  const auto of = [&](TensorKind kind) {
    const Tensors& tensors = trainer.Of(kind);
    return tensors.empty() ? Matrix() : tensors[parameter];
  };
  return {of(TensorKind::kMoment), of(TensorKind::kSecondMoment), of(TensorKind::kMaster)};
}

// A decay in the gradient makes the infinite element of a poisoned embedding NaN.
bool SameNumbers(const Matrix& a, const Matrix& b) {
  if (!a.SameShape(b)) return false;
  for (int64_t i = 0; i < a.numel(); ++i)
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

void ExpectState(const ParameterState& state, const ParameterState& expected, const std::string& name) {
  EXPECT_TRUE(SameNumbers(state.moment, expected.moment)) << name;
  EXPECT_TRUE(SameNumbers(state.second_moment, expected.second_moment)) << name;
  EXPECT_TRUE(SameNumbers(state.master, expected.master)) << name;
}

struct Group {
  double lr, weight_decay, beta1, beta2;
};

// By hand from Config().
Group GroupOfName(const std::string& name) {
  if (name.ends_with(".bias")) return {0.0625, 0.125, 0.5, 0.625};
  if (name.starts_with("layers.1.")) return {0.015625, 0.5, 0.25, 0.9375};
  return {0.03125, 0.25, 0.75, 0.875};
}

// Three steps, the second of them skipped.
void ExpectTraining(const contract::RunConfig& config) {
  contract::CaseData data = InMidTraining(config, 3);
  PoisonStep(data, kFirst + 1);
  RealTrainer trainer(data);
  int64_t t = kUpdates;
  for (int64_t step = kFirst; step < kFirst + 3; ++step) {
    const bool skipped = step == kFirst + 1;
    std::vector<ParameterState> before;
    for (size_t i = 0; i < data.parameters.size(); ++i) before.push_back(StateOf(trainer, i));
    RunStep(trainer, step);
    ASSERT_EQ(trainer.real()->skipped, skipped);
    if (!skipped) ++t;
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const std::string& name = data.parameters[i].name;
      ParameterState expected = before[i];
      if (!skipped && !data.parameters[i].frozen) {
        const Group group = GroupOfName(name);
        contract::OptimizerParams params = config.params;
        if (contract::HasBetas(config.optimizer)) {
          params.beta1 = group.beta1;
          params.beta2 = group.beta2;
        }
        expected = UpdateParameter(config.optimizer, trainer.Of(TensorKind::kGradient)[i], before[i], t, group.lr,
                                   group.weight_decay, params);
      }
      ExpectState(StateOf(trainer, i), expected, name);
    }
  }
}

class TrainingBy : public testing::TestWithParam<OptimizerKind> {};

TEST_P(TrainingBy, GivesEveryParameterTheSettingsOfItsGroupAndCountsUpdatesNotSteps) {
  ExpectTraining(Config(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, TrainingBy,
                         testing::Values(OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kLion,
                                         OptimizerKind::kLamb, OptimizerKind::kSgd),
                         [](const auto& info) { return std::string(contract::Name(info.param)); });

// Neither a gradient nor a moment: Lion's sign is 0, and all that happens is the decay.
TEST(Training, ByLionDecaysWhatIsUnused) {
  contract::RunConfig config = Config(OptimizerKind::kLion);
  contract::CaseData data = MakeRealCase(Model(), config, 1, kFirst);
  const size_t unused = data.parameters.size() - 1;
  ASSERT_EQ(data.parameters[unused].name, "unused.weight");
  RealTrainer trainer(data);
  RunStep(trainer, kFirst);
  const std::vector<float>& start = data.real_state[unused].master;
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_EQ(trainer.Of(TensorKind::kMaster)[unused][static_cast<int64_t>(i)],
              static_cast<double>(start[i]) * (1 - 0.03125 * 0.25));
}

TEST(Training, BySgdWithNesterovIsThatOfItsUpdate) {
  contract::RunConfig config = Config(OptimizerKind::kSgd);
  config.params.nesterov = true;
  ExpectTraining(config);
}

}  // namespace
}  // namespace plumbline::reference
