// SPDX-License-Identifier: Apache-2.0
// Clipping of family gpt2 in fp64 against docs/semantics.md, with SGD of lr 1, whose updates are the clipped gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/engines/torch_eager/gpt2_test_run.h"
#include "conformance/engines/torch_eager/gpt2_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::TensorKind;

// Attention's weights and biases are exempt in layer 1, but for `out.bias`, which an earlier group takes.
contract::RunConfig Config() {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kSgd;
  config.storage = contract::DType::kF64;
  config.params.lr = 1;
  config.groups = {{.match = "*.out.bias", .lr = {}, .weight_decay = {}},
                   {.match = "layers.1.attn.*", .lr = {}, .weight_decay = {}, .betas = {}, .clip = false}};
  return config;
}

bool IsExempt(const std::string& name) { return name.starts_with("layers.1.attn.") && !name.ends_with("out.bias"); }

// Untied, with an unused and two frozen parameters.
CaseData MakeCase(const contract::RunConfig& config, int64_t steps) {
  contract::Gpt2Spec model = Tiny();
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"embed.weight", "layers.0.mlp.down.weight"};
  return MakeGpt2Case(model, config, steps);
}

std::vector<double> Gradient(const Gpt2Trainer& trainer, size_t index) {
  return Doubles(trainer.Values(TensorKind::kGradient, index));
}

// Of a parameter in a step: the gradient that was found, and what was subtracted from the master weights.
struct Update {
  std::vector<double> gradient;
  std::vector<double> applied;
};

Update UpdateOf(const Gpt2Trainer& trainer, size_t index, const std::vector<double>& before) {
  Update update = {Gradient(trainer, index), before};
  const std::vector<double> after = Doubles(trainer.Values(TensorKind::kMaster, index));
  for (size_t e = 0; e < before.size(); ++e) update.applied[e] -= after[e];
  return update;
}

double SumOfSquares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

TEST(Gpt2Clipping, ExemptGroupsAreInNoNormAndMultipliedByNoFactor) {
  contract::RunConfig config = Config();
  config.gradient_clipping = 0.0625;
  const CaseData data = MakeCase(config, 1);
  Gpt2Trainer trainer(data);
  std::vector<std::vector<double>> before;
  for (size_t i = 0; i < data.parameters.size(); ++i) before.push_back(Doubles(trainer.Values(TensorKind::kMaster, i)));
  const double norm = TrainStep(trainer, data, 0).gradient_norm;
  double sum = 0, exempt_sum = 0;
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    (IsExempt(data.parameters[i].name) ? exempt_sum : sum) += SumOfSquares(Gradient(trainer, i));
  }
  ASSERT_GT(exempt_sum, 1e-6);
  ASSERT_GT(norm, 0.0625);
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-14);
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    const double factor = IsExempt(data.parameters[i].name) ? 1 : 0.0625 / (norm + 1e-6);
    const Update update = UpdateOf(trainer, i, before[i]);
    for (size_t e = 0; e < update.gradient.size(); ++e) {
      EXPECT_NEAR(update.applied[e], factor * update.gradient[e], 1e-14) << data.parameters[i].name;
    }
  }
}

// Everything is exempt but the unused parameter, whose gradient is zero whatever the others have.
TEST(Gpt2Clipping, AGradientThatIsNotFiniteSkipsTheStepThoughItIsExempt) {
  contract::RunConfig config = Config();
  config.groups = {{.match = "[!u]*", .lr = {}, .weight_decay = {}, .betas = {}, .clip = false}};
  for (const float poison : {0.0f, std::numeric_limits<float>::infinity()}) {
    CaseData data = MakeCase(config, 1);
    data.real_state[IndexOf(data, "norm.weight")].master[0] += poison;
    Gpt2Trainer trainer(data);
    const contract::RealStep report = TrainStep(trainer, data, 0);
    EXPECT_EQ(report.skipped, poison > 0);
    EXPECT_EQ(std::isfinite(report.gradient_norm), poison == 0);
    EXPECT_TRUE(poison > 0 || report.gradient_norm == 0);
    EXPECT_EQ(Gradient(trainer, IndexOf(data, "unused.weight")), std::vector<double>(15));
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
