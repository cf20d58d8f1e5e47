// SPDX-License-Identifier: Apache-2.0
// Implements parameter_groups.h.
#include "reference/optimizer/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

// What an lr of the group's own does to the scheduled rate.
double Quotient(double group_lr, double optimizer_lr) {
  if (optimizer_lr == 0)
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "config.optimizer.params.lr is 0; allowed with a scheduler and a group with an lr of its own: more "
                   "than 0, since the group's rate is a multiple of it");
  return group_lr / optimizer_lr;
}

}  // namespace

size_t GroupOf(const contract::RunConfig& config, const std::string& parameter) {
  for (size_t i = 0; i < config.groups.size(); ++i)
    if (fnmatch(config.groups[i].match.c_str(), parameter.c_str(), 0) == 0) return i + 1;
  return 0;
}

std::vector<double> GroupWeightDecays(const contract::RunConfig& config) {
  std::vector<double> decays = {config.params.weight_decay};
  for (const contract::ParameterGroup& group : config.groups)
    decays.push_back(group.weight_decay.value_or(config.params.weight_decay));
  return decays;
}

double WarmupFactor(const contract::Schedule& schedule, int64_t step) {
  const int64_t num_steps = std::max<int64_t>(2, schedule.warmup_num_steps);
  const int64_t k = step - 1;
  if (k < 0) return 0;
  if (k >= num_steps) return 1;
  const auto n = static_cast<double>(num_steps);
  return schedule.linear ? static_cast<double>(k) / n : std::log(static_cast<double>(k + 1)) / std::log(n);
}

std::vector<double> GroupLearningRates(const contract::RunConfig& config, int64_t step) {
  const contract::Schedule& schedule = config.schedule;
  const bool constant = schedule.kind == contract::Schedule::Kind::kConstant;
  const double warmed =
      schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * WarmupFactor(schedule, step);
  std::vector<double> rates = {constant ? config.params.lr : warmed};
  for (const contract::ParameterGroup& group : config.groups) {
    if (constant) {
      rates.push_back(group.lr.value_or(config.params.lr));
    } else {
      rates.push_back(group.lr ? warmed * Quotient(*group.lr, config.params.lr) : warmed);
    }
  }
  return rates;
}

}  // namespace plumbline::reference
