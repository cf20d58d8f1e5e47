// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/schedule_formula.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::Cycle;
using contract::Schedule;
using Kind = contract::Schedule::Kind;

// Of the longest way to a rate: log and its quotient, max - min, product, sum, the group's quotient and product, and
// three numbers of the config.
constexpr double kRoundings = 10;
// The cosine's argument is up to pi and has four roundings (steps, quotient, pi, product); the cosine moves by no more
// than its argument, and half of that is counted.
constexpr double kCosineRoundings = kRoundings + 2 * std::numbers::pi;

// Of the one rate that a schedule sets for all groups: the largest number on the way is what roundings are relative to.
struct Rate {
  double value = 0;
  double largest = 0;
};

double WarmupLength(const Schedule& schedule) {
  return static_cast<double>(std::max<int64_t>(2, schedule.warmup_num_steps));
}

// Share of the warm-up at 0 <= k < length.
double WarmupShare(const Schedule& schedule, double k) {
  const double length = WarmupLength(schedule);
  return schedule.linear ? k / length : std::log(k + 1) / std::log(length);
}

Rate WarmupRate(const Schedule& schedule, int64_t step) {
  const double length = WarmupLength(schedule);
  const auto k = static_cast<double>(step - 1);
  double share = 1;
  if (k < 0) {
    share = 0;
  } else if (k < length) {
    share = WarmupShare(schedule, k);
  } else if (schedule.kind == Kind::kWarmupDecay) {
    const auto total = static_cast<double>(schedule.total_num_steps);
    share = std::max(0.0, (total - k) / std::max(1.0, total - length));
  }
  // Linear in the share from min to max; a decay with fewer steps than the warm-up begins above 1.
  const double largest = std::max(schedule.warmup_min_lr, schedule.warmup_max_lr) * std::max(1.0, share);
  return {schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * share, largest};
}

// WarmupCosineLR's share of a group's own rate.
double CosineShare(const Schedule& schedule, int64_t step) {
  const double length = WarmupLength(schedule);
  const auto k = static_cast<double>(step - 1);
  if (k < 0) return 0;
  if (k < length) {
    return schedule.warmup_min_ratio + (1 - schedule.warmup_min_ratio) * WarmupShare(schedule, k);
  }
  const double window = std::max(1.0, static_cast<double>(schedule.total_num_steps) - length);
  const double progress = std::min(1.0, (k - length + 1) / window);
  const double wave = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return schedule.cos_min_ratio + (1 - schedule.cos_min_ratio) * wave;
}

int64_t CycleSteps(const Cycle& cycle) { return cycle.first_steps + cycle.second_steps; }

bool IsInCycle(const Cycle& cycle, int64_t step) { return step - 1 < CycleSteps(cycle); }

// How far the rate is on its way from min to max: exact integers as long as they can be.
double CycleHeight(const Cycle& cycle, int64_t step) {
  const int64_t place = step % CycleSteps(cycle);
  const bool rises = place <= cycle.first_steps;
  const int64_t up = rises ? place : CycleSteps(cycle) - place;
  const int64_t of = rises ? cycle.first_steps : cycle.second_steps;
  const int64_t stairs = rises ? cycle.first_stairs : cycle.second_stairs;
  if (stairs == 0) return static_cast<double>(up) / static_cast<double>(of);
  // up <= of <= 2^40 and stairs <= 2^40: the product may leave int64_t.
  const auto stair = static_cast<int64_t>(static_cast<__int128>(up) * stairs / of);
  return static_cast<double>(stair) / static_cast<double>(stairs);
}

Rate CycleRate(const Cycle& cycle, int64_t step) {
  if (IsInCycle(cycle, step)) {
    const double height = CycleHeight(cycle, step);
    return {cycle.min_lr + (cycle.max_lr - cycle.min_lr) * height, std::max(cycle.min_lr, cycle.max_lr)};
  }
  if (cycle.decay_steps == 0) return {cycle.min_lr, cycle.min_lr};
  const double interval = static_cast<double>(step - CycleSteps(cycle)) / static_cast<double>(cycle.decay_steps);
  return {cycle.min_lr / (1 + cycle.decay_lr_rate * interval), cycle.min_lr};
}

Bounded Within(const Rate& rate, double share, double roundings) {
  return {rate.value * share, roundings * kFp32Rounding * rate.largest * share};
}

}  // namespace

std::vector<Bounded> ScheduledLr(const contract::RunConfig& config, int64_t step) {
  const Schedule& schedule = config.schedule;
  const auto own_lr = [&](const contract::ParameterGroup& group) { return group.lr.value_or(config.params.lr); };
  // Of the one rate for all: what a group with a rate of its own gets of it.
  const auto share = [&](const contract::ParameterGroup& group) {
    return own_lr(group) == config.params.lr ? 1 : own_lr(group) / config.params.lr;
  };
  const auto of_all = [&](const Rate& rate) {
    std::vector<Bounded> lrs = {Within(rate, 1, kRoundings)};
    for (const contract::ParameterGroup& group : config.groups) lrs.push_back(Within(rate, share(group), kRoundings));
    return lrs;
  };
  const auto of_each = [&](double factor, double roundings) {
    std::vector<Bounded> lrs = {Within({factor * config.params.lr, config.params.lr}, 1, roundings)};
    for (const contract::ParameterGroup& group : config.groups) {
      lrs.push_back(Within({factor * own_lr(group), own_lr(group)}, 1, roundings));
    }
    return lrs;
  };
  switch (schedule.kind) {
    case Kind::kConstant:
      return of_each(1, kRoundings);
    case Kind::kWarmup:
    case Kind::kWarmupDecay:
      return of_all(WarmupRate(schedule, step));
    case Kind::kWarmupCosine:
      return of_each(CosineShare(schedule, step), kCosineRoundings);
    case Kind::kOneCycle:
      return of_all(CycleRate(schedule.cycle, step));
  }
  contract::Fail(contract::ErrorCode::kInternal, "a schedule without a formula");
}

Betas ScheduledBetas(const contract::RunConfig& config, size_t group, int64_t step) {
  const Cycle& cycle = config.schedule.cycle;
  const bool moves =
      config.schedule.kind == Kind::kOneCycle && cycle.moves_momentum && contract::HasBetas(config.optimizer);
  if (!moves) {
    const contract::BetaPair whole{config.params.beta1, config.params.beta2};
    const contract::BetaPair own = group == 0 ? whole : config.groups.at(group - 1).betas.value_or(whole);
    return {own.first, own.second, 1};
  }
  constexpr double kSecondBeta = 0.99;
  Betas betas{cycle.max_momentum, kSecondBeta, 1};
  if (step == 0) {
    betas.first = cycle.min_momentum;
  } else if (IsInCycle(cycle, step)) {
    betas.first = cycle.max_momentum - (cycle.max_momentum - cycle.min_momentum) * CycleHeight(cycle, step);
    // Both ends, their difference, the height, the product, the difference: each relative to the larger end.
    constexpr double kMomentumRoundings = 7;
    const double larger = std::max(cycle.min_momentum, cycle.max_momentum);
    if (betas.first > 0) betas.first_units = kMomentumRoundings * larger / betas.first;
  }
  return betas;
}

}  // namespace plumbline::conformance
