// SPDX-License-Identifier: Apache-2.0
// Implementation of schedule.h.
#include "conformance/engines/torch_eager/schedule.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "conformance/contract/error.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::Cycle;
using contract::RunConfig;
using contract::Schedule;
using Kind = Schedule::Kind;

// N, the steps of a warm-up.
int64_t WarmupSteps(const Schedule& schedule) { return std::max<int64_t>(2, schedule.warmup_num_steps); }

// w(k), for 0 <= k < N.
double WarmupShare(const Schedule& schedule, int64_t k) {
  const auto n = static_cast<double>(WarmupSteps(schedule));
  return schedule.linear ? static_cast<double>(k) / n : std::log(static_cast<double>(k + 1)) / std::log(n);
}

// What is left after the warm-up, S - N steps or at least one, as the divisor of a share.
double StepsAfterWarmup(const Schedule& schedule) {
  return static_cast<double>(std::max<int64_t>(1, schedule.total_num_steps - WarmupSteps(schedule)));
}

double WarmupRate(const Schedule& schedule, double gamma) {
  return schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * gamma;
}

double WarmupGamma(const Schedule& schedule, int64_t k) {
  if (k < 0) return 0;
  return k < WarmupSteps(schedule) ? WarmupShare(schedule, k) : 1;
}

double WarmupDecayGamma(const Schedule& schedule, int64_t k) {
  if (k < WarmupSteps(schedule)) return WarmupGamma(schedule, k);
  return std::max(0.0, static_cast<double>(schedule.total_num_steps - k) / StepsAfterWarmup(schedule));
}

// rho, by which a group's own lr is multiplied.
double WarmupCosineRatio(const Schedule& schedule, int64_t k) {
  if (k < 0) return 0;
  const int64_t n = WarmupSteps(schedule);
  if (k < n) return schedule.warmup_min_ratio + (1 - schedule.warmup_min_ratio) * WarmupShare(schedule, k);
  const double progress = std::min(1.0, static_cast<double>(k - n + 1) / StepsAfterWarmup(schedule));
  return schedule.cos_min_ratio + (1 - schedule.cos_min_ratio) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

// part / whole, rounded down to a stair where there are any. In integers, so that no stair is lost to rounding; counts
// go up to 2^40, hence the width of the product.
double OnStairs(int64_t part, int64_t whole, int64_t num_stairs) {
  if (num_stairs == 0) return static_cast<double>(part) / static_cast<double>(whole);
  const auto stair = static_cast<int64_t>(static_cast<__int128>(num_stairs) * part / whole);
  return static_cast<double>(stair) / static_cast<double>(num_stairs);
}

int64_t CycleSteps(const Cycle& cycle) { return cycle.first_steps + cycle.second_steps; }

// Up to and including step F + G, since k = step - 1 counts.
bool IsInCycle(const Cycle& cycle, int64_t step) { return step - 1 < CycleSteps(cycle); }

// sigma: 0 where the rate is the least, 1 where it is the greatest.
double CycleHeight(const Cycle& cycle, int64_t step) {
  const int64_t c = step % CycleSteps(cycle);
  if (c <= cycle.first_steps) return OnStairs(c, cycle.first_steps, cycle.first_stairs);
  return OnStairs(CycleSteps(cycle) - c, cycle.second_steps, cycle.second_stairs);
}

double OneCycleRate(const Cycle& cycle, int64_t step) {
  if (IsInCycle(cycle, step)) return cycle.min_lr + (cycle.max_lr - cycle.min_lr) * CycleHeight(cycle, step);
  if (cycle.decay_steps == 0) return cycle.min_lr;
  const double intervals = static_cast<double>(step - CycleSteps(cycle)) / static_cast<double>(cycle.decay_steps);
  return cycle.min_lr / (1 + cycle.decay_lr_rate * intervals);
}

double OneCycleBeta1(const Cycle& cycle, int64_t step) {
  if (step == 0) return cycle.min_momentum;
  if (!IsInCycle(cycle, step)) return cycle.max_momentum;
  return cycle.max_momentum - (cycle.max_momentum - cycle.min_momentum) * CycleHeight(cycle, step);
}

// Every group's own lr times `ratio`.
std::vector<double> OwnRates(const RunConfig& config, double ratio) {
  std::vector<double> rates = {config.params.lr * ratio};
  for (const contract::ParameterGroup& group : config.groups) {
    rates.push_back(group.lr.value_or(config.params.lr) * ratio);
  }
  return rates;
}

// `rate`, of which a group with an lr of its own gets the share that it has of the optimizer's.
std::vector<double> OneRate(const RunConfig& config, double rate) {
  std::vector<double> rates = {rate};
  for (const contract::ParameterGroup& group : config.groups) {
    rates.push_back(group.lr ? rate * (*group.lr / config.params.lr) : rate);
  }
  return rates;
}

std::vector<Betas> OwnBetas(const RunConfig& config) {
  std::vector<Betas> betas = {{config.params.beta1, config.params.beta2}};
  for (const contract::ParameterGroup& group : config.groups) {
    betas.push_back(group.betas ? Betas{group.betas->first, group.betas->second} : betas[0]);
  }
  return betas;
}

// Behind each switch over kinds, none of which has a default: the compiler names the switch that lacks a new kind.
[[noreturn]] void FailUnknownKind() {
  contract::Fail(contract::ErrorCode::kUnsupported, "torch_eager: config.scheduler is of a kind without a formula");
}

}  // namespace

int64_t GroupOf(const RunConfig& config, const std::string& parameter) {
  for (size_t i = 0; i < config.groups.size(); ++i) {
    if (fnmatch(config.groups[i].match.c_str(), parameter.c_str(), 0) == 0) return static_cast<int64_t>(i) + 1;
  }
  return 0;
}

double WeightDecayOf(const RunConfig& config, int64_t group) {
  if (group == 0) return config.params.weight_decay;
  return config.groups.at(group - 1).weight_decay.value_or(config.params.weight_decay);
}

bool IsClipped(const RunConfig& config, const std::string& parameter) {
  const int64_t group = GroupOf(config, parameter);
  return group == 0 || config.groups.at(group - 1).clip;
}

bool SetsOneRate(const Schedule& schedule) {
  switch (schedule.kind) {
    case Kind::kConstant:
    case Kind::kWarmupCosine:
      return false;
    case Kind::kWarmup:
    case Kind::kWarmupDecay:
    case Kind::kOneCycle:
      return true;
  }
  FailUnknownKind();
}

std::vector<double> LearningRates(const RunConfig& config, int64_t step) {
  const Schedule& schedule = config.schedule;
  const int64_t k = step - 1;  // calls of DeepSpeed's schedule before this step
  switch (schedule.kind) {
    case Kind::kConstant:
      return OwnRates(config, 1);
    case Kind::kWarmup:
      return OneRate(config, WarmupRate(schedule, WarmupGamma(schedule, k)));
    case Kind::kWarmupDecay:
      return OneRate(config, WarmupRate(schedule, WarmupDecayGamma(schedule, k)));
    case Kind::kWarmupCosine:
      return OwnRates(config, WarmupCosineRatio(schedule, k));
    case Kind::kOneCycle:
      return OneRate(config, OneCycleRate(schedule.cycle, step));
  }
  FailUnknownKind();
}

std::vector<Betas> BetasAt(const RunConfig& config, int64_t step) {
  const Cycle& cycle = config.schedule.cycle;
  switch (config.schedule.kind) {
    case Kind::kConstant:
    case Kind::kWarmup:
    case Kind::kWarmupDecay:
    case Kind::kWarmupCosine:
      return OwnBetas(config);
    case Kind::kOneCycle:
      if (!cycle.moves_momentum) return OwnBetas(config);
      return std::vector<Betas>(config.groups.size() + 1, {OneCycleBeta1(cycle, step), 0.99});
  }
  FailUnknownKind();
}

}  // namespace plumbline::conformance::torch_eager
