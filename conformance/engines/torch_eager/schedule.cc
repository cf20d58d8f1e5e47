// SPDX-License-Identifier: Apache-2.0
// Implementation of schedule.h.
#include "conformance/engines/torch_eager/schedule.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

namespace plumbline::conformance::torch_eager {
namespace {

// WarmupLR (DeepSpeed).
double WarmupRate(const contract::Schedule& schedule, int64_t step) {
  const int64_t num_steps = std::max<int64_t>(2, schedule.warmup_num_steps);
  const int64_t k = step - 1;
  double gamma = 1;
  if (k < 0) {
    gamma = 0;
  } else if (k < num_steps) {
    const auto n = static_cast<double>(num_steps);
    gamma = schedule.linear ? static_cast<double>(k) / n : std::log(static_cast<double>(k + 1)) / std::log(n);
  }
  return schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * gamma;
}

}  // namespace

int64_t GroupOf(const contract::RunConfig& config, const std::string& parameter) {
  for (size_t i = 0; i < config.groups.size(); ++i) {
    if (fnmatch(config.groups[i].match.c_str(), parameter.c_str(), 0) == 0) return static_cast<int64_t>(i) + 1;
  }
  return 0;
}

double WeightDecayOf(const contract::RunConfig& config, int64_t group) {
  if (group == 0) return config.params.weight_decay;
  return config.groups.at(group - 1).weight_decay.value_or(config.params.weight_decay);
}

std::vector<double> LearningRates(const contract::RunConfig& config, int64_t step) {
  const bool warmup = config.schedule.kind == contract::Schedule::Kind::kWarmup;
  const double base = warmup ? WarmupRate(config.schedule, step) : config.params.lr;
  std::vector<double> rates = {base};
  for (const contract::ParameterGroup& group : config.groups) {
    if (!group.lr) {
      rates.push_back(base);
    } else {
      rates.push_back(warmup ? base * (*group.lr / config.params.lr) : *group.lr);
    }
  }
  return rates;
}

}  // namespace plumbline::conformance::torch_eager
