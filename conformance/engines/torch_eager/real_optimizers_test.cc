// SPDX-License-Identifier: Apache-2.0
// The optimizers of the real families in fp64 against docs/semantics.md, twice: numbers worked out by hand for a
// parameter whose gradient is zero, and the formulas in plain loops for every element of a model with groups, a skipped
// step and moments that the case gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
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
using contract::RunConfig;
using contract::TensorKind;

RunConfig Config(OptimizerKind optimizer) {
  RunConfig config;
  config.optimizer = optimizer;
  config.storage = contract::DType::kF64;
  return config;
}

// Every element of `unused.weight`, which has a gradient of zero.
struct Idle {
  double master = 0;
  double moment = 0;
  double second_moment = 0;
};

// The same after one step from `start`, t being `num_updates` + 1.
Idle AfterAStep(const RunConfig& config, const Idle& start, int64_t num_updates) {
  contract::Gpt2Spec model = Tiny();
  model.unused = true;
  CaseData data = MakeRealCase(model, config, /*steps=*/1, /*batch=*/2);
  data.num_updates = num_updates;
  const size_t unused = IndexOf(data, "unused.weight");
  contract::RealParameterState& state = data.real_state[unused];
  std::fill(state.master.begin(), state.master.end(), static_cast<float>(start.master));
  std::fill(state.moment.begin(), state.moment.end(), static_cast<float>(start.moment));
  std::fill(state.second_moment.begin(), state.second_moment.end(), static_cast<float>(start.second_moment));
  RealTrainer trainer(data);
  TrainStep(trainer, data, 0);
  const auto value_of_all = [&](TensorKind kind) {
    const std::vector<double> values = Doubles(trainer.Values(kind, unused));
    for (const double value : values) EXPECT_EQ(value, values[0]) << Name(kind);
    return values.empty() ? 0 : values[0];
  };
  return {value_of_all(TensorKind::kMaster), value_of_all(TensorKind::kMoment),
          value_of_all(TensorKind::kSecondMoment)};
}

void ExpectNear(const Idle& found, const Idle& expected) {
  EXPECT_NEAR(found.master, expected.master, 1e-15);
  EXPECT_NEAR(found.moment, expected.moment, 1e-15);
  EXPECT_NEAR(found.second_moment, expected.second_moment, 1e-15);
}

// g = 2/4. In the first update b is g; in the third (1/4) / 2 + g = 5/8. The step is g + b / 2.
TEST(RealOptimizers, NesterovByHand) {
  RunConfig config = Config(OptimizerKind::kSgd);
  config.params = {.lr = 0.125, .weight_decay = 0.25, .momentum = 0.5, .nesterov = true};
  ExpectNear(AfterAStep(config, {2, 0.25}, 0), {2 - 0.75 / 8, 0.5});
  ExpectNear(AfterAStep(config, {2, 0.25}, 2), {2 - 0.8125 / 8, 0.625});
}

// With the betas of the group, 1/2 and 3/4, and t = 2. g = 2/8, so m and v stay 1/4 and 1/16; their corrections divide
// by 3/4 and 7/16.
TEST(RealOptimizers, AdamByHand) {
  RunConfig config = Config(OptimizerKind::kAdam);
  config.params = {.lr = 0.125, .beta1 = 0.875, .beta2 = 0.9375, .eps = 0.25, .weight_decay = 0.125};
  config.groups = {{.match = "unused.*", .lr = {}, .weight_decay = {}, .betas = {{0.5, 0.75}}}};
  ExpectNear(AfterAStep(config, {2, 0.25, 0.0625}, 1),
             {2 - 0.125 * (1.0 / 3) / (std::sqrt(1.0 / 7) + 0.25), 0.25, 0.0625});
}

// The sign of the old moment, 1 or 0, after a decay of 1/64 of the weight; the moment shrinks by the group's 3/4.
TEST(RealOptimizers, LionByHand) {
  RunConfig config = Config(OptimizerKind::kLion);
  config.params = {.lr = 0.125, .beta1 = 0.875, .beta2 = 0.9375, .weight_decay = 0.125};
  config.groups = {{.match = "unused.*", .lr = {}, .weight_decay = {}, .betas = {{0.5, 0.75}}}};
  for (const int64_t num_updates : {0, 7}) {
    ExpectNear(AfterAStep(config, {2, 0.25}, num_updates), {2 * (1 - 1.0 / 64) - 0.125, 0.1875});
    ExpectNear(AfterAStep(config, {2, -1e-30f}, num_updates), {2 * (1 - 1.0 / 64) + 0.125, -0.75e-30});
    ExpectNear(AfterAStep(config, {2, 0}, num_updates), {2 * (1 - 1.0 / 64), 0});
  }
}

// Step 0 has the lower bound of beta1, and 0.99 for beta2, whatever the group says. With a beta1 of 0 the direction is
// the sign of the gradient alone, which is 0.
TEST(RealOptimizers, OneCycleMovesTheBetasOfLion) {
  RunConfig config = Config(OptimizerKind::kLion);
  config.groups = {{.match = "unused.*", .lr = {}, .weight_decay = {}, .betas = {{0.5, 0.75}}}};
  config.schedule.kind = contract::Schedule::Kind::kOneCycle;
  config.schedule.cycle = {.min_lr = 0.25, .max_lr = 0.5, .first_steps = 2, .second_steps = 2, .min_momentum = 0.5};
  ExpectNear(AfterAStep(config, {2, 0.25}, 0), {1.75, 0.2475});
  config.schedule.cycle.min_momentum = 0;
  ExpectNear(AfterAStep(config, {2, 0.25}, 0), {2, 0.2475});
}

// With the betas of the group, 1/2 and 3/4, and t = 2: m becomes 1/4 and v 3/64, whose corrections divide by 3/4 and
// 7/16.
constexpr double kLambMoment = 0.25;
constexpr double kLambSecondMoment = 3.0 / 64;

RunConfig LambConfig(double min_coeff, double max_coeff) {
  RunConfig config = Config(OptimizerKind::kLamb);
  config.params = {.lr = 0.125, .beta1 = 0.875, .beta2 = 0.9375, .eps = 0.25, .weight_decay = 0.125};
  config.params.min_coeff = min_coeff;
  config.params.max_coeff = max_coeff;
  config.groups = {{.match = "unused.*", .lr = {}, .weight_decay = {}, .betas = {{0.5, 0.75}}}};
  return config;
}

// u of a weight of p.
double LambStep(double p) { return (1.0 / 3) / (std::sqrt(3.0 / 28) + 0.25) + 0.125 * p; }

void ExpectLamb(double p, double min_coeff, double max_coeff, double expected) {
  ExpectNear(AfterAStep(LambConfig(min_coeff, max_coeff), {p, 0.5, 0.0625}, 1),
             {expected, kLambMoment, kLambSecondMoment});
}

// All elements are alike, so the ratio is |p| / |u|: a step is lr |p|, whatever u is.
TEST(RealOptimizers, LambByHand) {
  ASSERT_GT(2 / LambStep(2), 2.25);
  ASSERT_LT(2 / LambStep(2), 2.5);
  ExpectLamb(2, 0.01, 10, 2 - 0.125 * 2);
  ExpectLamb(2, 0.01, 2.25, 2 - 0.125 * 2.25 * LambStep(2));
  ExpectLamb(2, 2.5, 10, 2 - 0.125 * 2.5 * LambStep(2));
}

// The ratio is 1 then, even where the limits do not allow it.
TEST(RealOptimizers, LambHasNoRatioWhereANormIsZero) {
  ExpectLamb(0, 0.01, 10, -0.125 * LambStep(0));
  ExpectLamb(0, 4, 10, -0.125 * LambStep(0));
  ExpectNear(AfterAStep(LambConfig(4, 10), {0, 0, 0}, 1), {0, 0, 0});
  RunConfig no_decay = LambConfig(4, 10);
  no_decay.params.weight_decay = 0;
  ExpectNear(AfterAStep(no_decay, {2, 0, 0.0625}, 1), {2, 0, kLambSecondMoment});
}

// A whole parameter as a plain loop sees it.
struct Parameter {
  size_t index;
  double lr, decay, beta1, beta2;  // of its group
  std::vector<double> master, moment, second_moment;
};

// Updates a parameter by its gradient; t is the number of the update, 1 the first.
using Formula = std::function<void(Parameter&, const std::vector<double>& gradient, double t)>;

constexpr int64_t kSteps = 4;
constexpr int64_t kSkipped = 1;

// No default is a setting here: an engine that ignores one is seen. Biases and embeddings have settings of their own.
RunConfig ConfigWithGroups(OptimizerKind optimizer) {
  RunConfig config = Config(optimizer);
  config.params = {.lr = 0.0625, .beta1 = 0.75, .beta2 = 0.875, .eps = 1e-3, .weight_decay = 0.5, .momentum = 0.625};
  config.groups = {{.match = "*.bias", .lr = 0.25, .weight_decay = 0.0, .betas = {{0.5, 0.625}}},
                   {.match = "layers.1.*", .lr = {}, .weight_decay = 0.125},
                   {.match = "pos.*", .lr = 0.125, .weight_decay = {}, .betas = {{0.25, 0.9375}}}};
  if (optimizer != OptimizerKind::kSgd) return config;
  for (contract::ParameterGroup& group : config.groups) group.betas.reset();
  return config;
}

// The frozen embedding of token 7 is infinite, and only step kSkipped reads it.
CaseData MakeCase(const RunConfig& config, int64_t num_updates) {
  contract::Gpt2Spec model = Tiny();
  model.tied_head = false;
  model.unused = true;
  model.frozen = {"embed.weight", "layers.0.norm1.bias"};
  CaseData data = MakeRealCase(model, config, kSteps, /*batch=*/4, /*accumulation=*/2);
  data.num_updates = num_updates;
  data.real_state[0].master[7 * model.width] = std::numeric_limits<float>::infinity();
  std::replace(data.batches.tokens.begin(), data.batches.tokens.end(), 7, 3);
  data.batches.tokens[data.batches.Index(kSkipped, 0, 0)] = 7;
  for (contract::RealParameterState& state : data.real_state) {
    for (size_t e = 0; e < state.moment.size(); ++e) state.moment[e] = static_cast<float>(e * 7 % 11) / 64 - 0.0625f;
    for (size_t e = 0; e < state.second_moment.size(); ++e) {
      state.second_moment[e] = static_cast<float>(1 + e % 5) / 64;
    }
  }
  return data;
}

Parameter StartOf(const CaseData& data, size_t index) {
  const contract::RealParameterState& state = data.real_state[index];
  const std::string& name = data.parameters[index].name;
  Parameter parameter = {index, 0.0625, 0.5, 0.75, 0.875, {}, {}, {}};
  if (name.ends_with(".bias")) {
    parameter = {index, 0.25, 0, 0.5, 0.625, {}, {}, {}};
  } else if (name.starts_with("layers.1.")) {
    parameter.decay = 0.125;
  } else if (name == "pos.weight") {
    parameter = {index, 0.125, 0.5, 0.25, 0.9375, {}, {}, {}};
  }
  parameter.master.assign(state.master.begin(), state.master.end());
  parameter.moment.assign(state.moment.begin(), state.moment.end());
  parameter.second_moment.assign(state.second_moment.begin(), state.second_moment.end());
  return parameter;
}

void ExpectValues(const RealTrainer& trainer, TensorKind kind, size_t index, const std::vector<double>& expected) {
  const contract::HostTensor tensor = trainer.Values(kind, index);
  const std::vector<double> found = Doubles(tensor);
  ASSERT_EQ(found.size(), expected.size()) << tensor.name << ", " << Name(kind);
  for (size_t e = 0; e < found.size(); ++e) {
    ASSERT_NEAR(found[e], expected[e], 1e-13) << tensor.name << "[" << e << "], " << Name(kind);
  }
}

void ExpectFollows(const RunConfig& config, const Formula& formula) {
  for (const int64_t num_updates : {0, 3}) {
    const CaseData data = MakeCase(config, num_updates);
    RealTrainer trainer(data);
    std::vector<Parameter> parameters;
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      if (!data.parameters[i].frozen) parameters.push_back(StartOf(data, i));
    }
    auto t = static_cast<double>(num_updates);
    for (int64_t step = 0; step < kSteps; ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + " after " + std::to_string(num_updates) + " updates");
      const bool skipped = TrainStep(trainer, data, step).skipped;
      ASSERT_EQ(skipped, step == kSkipped);
      if (!skipped) ++t;
      for (Parameter& parameter : parameters) {
        if (!skipped) formula(parameter, Doubles(trainer.Values(TensorKind::kGradient, parameter.index)), t);
        ExpectValues(trainer, TensorKind::kMoment, parameter.index, parameter.moment);
        ExpectValues(trainer, TensorKind::kSecondMoment, parameter.index, parameter.second_moment);
        ExpectValues(trainer, TensorKind::kMaster, parameter.index, parameter.master);
      }
    }
  }
}

TEST(RealOptimizers, NesterovFollowsTheDocument) {
  RunConfig config = ConfigWithGroups(OptimizerKind::kSgd);
  config.params.nesterov = true;
  ExpectFollows(config, [](Parameter& x, const std::vector<double>& gradient, double t) {
    for (size_t e = 0; e < gradient.size(); ++e) {
      const double g = gradient[e] + x.decay * x.master[e];
      x.moment[e] = t == 1 ? g : 0.625 * x.moment[e] + g;
      x.master[e] -= x.lr * (g + 0.625 * x.moment[e]);
    }
  });
}

// Of Adam, or of AdamW, whose decay is decoupled from the gradient.
Formula AdamFormula(bool decoupled) {
  return [decoupled](Parameter& x, const std::vector<double>& gradient, double t) {
    for (size_t e = 0; e < gradient.size(); ++e) {
      double& p = x.master[e];
      const double g = gradient[e] + (decoupled ? 0 : x.decay * p);
      if (decoupled) p *= 1 - x.lr * x.decay;
      x.moment[e] = x.beta1 * x.moment[e] + (1 - x.beta1) * g;
      x.second_moment[e] = x.beta2 * x.second_moment[e] + (1 - x.beta2) * g * g;
      const double v = x.second_moment[e] / (1 - std::pow(x.beta2, t));
      p -= x.lr * (x.moment[e] / (1 - std::pow(x.beta1, t))) / (std::sqrt(v) + 1e-3);
    }
  };
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// With limits that some parameters reach.
TEST(RealOptimizers, LambFollowsTheDocument) {
  RunConfig config = ConfigWithGroups(OptimizerKind::kLamb);
  config.params.min_coeff = 0.125;
  config.params.max_coeff = 1.5;
  int num_low = 0, num_between = 0, num_high = 0;
  ExpectFollows(config, [&](Parameter& x, const std::vector<double>& gradient, double t) {
    std::vector<double> u;
    for (size_t e = 0; e < gradient.size(); ++e) {
      x.moment[e] = x.beta1 * x.moment[e] + (1 - x.beta1) * gradient[e];
      x.second_moment[e] = x.beta2 * x.second_moment[e] + (1 - x.beta2) * gradient[e] * gradient[e];
      const double v = x.second_moment[e] / (1 - std::pow(x.beta2, t));
      u.push_back(x.moment[e] / (1 - std::pow(x.beta1, t)) / (std::sqrt(v) + 1e-3) + x.decay * x.master[e]);
    }
    const double ratio = Norm(x.master) / Norm(u);
    const double limited = ratio < 0.125 ? 0.125 : ratio > 1.5 ? 1.5 : ratio;
    ++(limited > ratio ? num_low : limited < ratio ? num_high : num_between);
    for (size_t e = 0; e < gradient.size(); ++e) x.master[e] -= x.lr * limited * u[e];
  });
  EXPECT_GT(num_low, 0);
  EXPECT_GT(num_between, 0);
  EXPECT_GT(num_high, 0);
}

TEST(RealOptimizers, LionFollowsTheDocument) {
  ExpectFollows(ConfigWithGroups(OptimizerKind::kLion), [](Parameter& x, const std::vector<double>& gradient, double) {
    for (size_t e = 0; e < gradient.size(); ++e) {
      const double direction = x.beta1 * x.moment[e] + (1 - x.beta1) * gradient[e];
      x.master[e] *= 1 - x.lr * x.decay;
      if (direction != 0) x.master[e] -= std::copysign(x.lr, direction);
      x.moment[e] = x.beta2 * x.moment[e] + (1 - x.beta2) * gradient[e];
    }
  });
}

TEST(RealOptimizers, AdamAddsTheDecayToTheGradient) {
  ExpectFollows(ConfigWithGroups(OptimizerKind::kAdam), AdamFormula(/*decoupled=*/false));
}

TEST(RealOptimizers, AdamWHasTheBetasOfGroups) {
  ExpectFollows(ConfigWithGroups(OptimizerKind::kAdamW), AdamFormula(/*decoupled=*/true));
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
