// SPDX-License-Identifier: Apache-2.0
// Implements parameter_groups.h.
#include "reference/optimizer/parameter_groups.h"

#include <fnmatch.h>

#include <optional>

#include "reference/optimizer/schedule.h"

namespace plumbline::reference {
namespace {

// A rate that the schedule sets for all groups, in a group with or without an lr of its own. With one, the config has
// no optimizer_lr of 0.
double Shared(double rate, const std::optional<double>& own_lr, double optimizer_lr) {
  return own_lr ? rate * (*own_lr / optimizer_lr) : rate;
}

double BetweenWarmupRates(const contract::Schedule& schedule, double factor) {
  return schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * factor;
}

double GroupRate(const contract::RunConfig& config, const std::optional<double>& own_lr, int64_t step) {
  const contract::Schedule& schedule = config.schedule;
  const double optimizer_lr = config.params.lr;
  switch (schedule.kind) {
    case contract::Schedule::Kind::kConstant:
      return own_lr.value_or(optimizer_lr);
    case contract::Schedule::Kind::kWarmup:
      return Shared(BetweenWarmupRates(schedule, WarmupFactor(schedule, step)), own_lr, optimizer_lr);
    case contract::Schedule::Kind::kWarmupDecay:
      return Shared(BetweenWarmupRates(schedule, WarmupDecayFactor(schedule, step)), own_lr, optimizer_lr);
    case contract::Schedule::Kind::kWarmupCosine:
      return own_lr.value_or(optimizer_lr) * WarmupCosineRatio(schedule, step);
    case contract::Schedule::Kind::kOneCycle:
      return Shared(CycleRate(schedule.cycle, step), own_lr, optimizer_lr);
  }
  RejectKind(schedule.kind);
}

contract::OptimizerParams WithBetas(const contract::RunConfig& config, const std::optional<contract::BetaPair>& own,
                                    int64_t step) {
  contract::OptimizerParams params = config.params;
  const std::optional<contract::BetaPair> scheduled = ScheduledBetas(config.schedule, step);
  const std::optional<contract::BetaPair>& betas = scheduled ? scheduled : own;
  if (!betas) return params;
  params.beta1 = betas->first;
  params.beta2 = betas->second;
  return params;
}

}  // namespace

size_t GroupOf(const contract::RunConfig& config, const std::string& parameter) {
  for (size_t i = 0; i < config.groups.size(); ++i)
    if (fnmatch(config.groups[i].match.c_str(), parameter.c_str(), 0) == 0) return i + 1;
  return 0;
}

bool IsExempt(const contract::RunConfig& config, const std::string& parameter) {
  const size_t group = GroupOf(config, parameter);
  return group > 0 && !config.groups[group - 1].clip;
}

std::vector<double> GroupWeightDecays(const contract::RunConfig& config) {
  std::vector<double> decays = {config.params.weight_decay};
  for (const contract::ParameterGroup& group : config.groups)
    decays.push_back(group.weight_decay.value_or(config.params.weight_decay));
  return decays;
}

std::vector<contract::OptimizerParams> GroupParams(const contract::RunConfig& config, int64_t step) {
  std::vector<contract::OptimizerParams> params = {WithBetas(config, std::nullopt, step)};
  for (const contract::ParameterGroup& group : config.groups) params.push_back(WithBetas(config, group.betas, step));
  return params;
}

std::vector<double> GroupLearningRates(const contract::RunConfig& config, int64_t step) {
  std::vector<double> rates = {GroupRate(config, std::nullopt, step)};
  for (const contract::ParameterGroup& group : config.groups) rates.push_back(GroupRate(config, group.lr, step));
  return rates;
}

}  // namespace plumbline::reference
