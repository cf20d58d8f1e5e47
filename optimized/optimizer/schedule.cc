// SPDX-License-Identifier: Apache-2.0
// See schedule.h. Letters are those of docs/semantics.md: k is the number of the last call of the schedule before a
// step, N the length of the warm-up, S that of the whole, F and G those of a cycle's halves. Counts stay integers up to
// the one division that makes a share of them.
#include "optimized/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using contract::Cycle;
using contract::Schedule;
using Kind = Schedule::Kind;

constexpr double kCycleBeta2 = 0.99;

double Ratio(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

// k. The first call is number 0, after step 0, which itself has -1.
int64_t LastCall(int64_t step) { return step - 1; }

int64_t WarmupLength(const Schedule& schedule) { return std::max<int64_t>(2, schedule.warmup_num_steps); }

// Steps from the end of the warm-up to the last one, and 1 where there is none: a divisor.
int64_t StepsAfterWarmup(const Schedule& schedule) {
  return std::max<int64_t>(1, schedule.total_num_steps - WarmupLength(schedule));
}

// w(k), 0 <= k < N.
double WarmupShare(const Schedule& schedule, int64_t k) {
  const int64_t length = WarmupLength(schedule);
  if (schedule.linear) return Ratio(k, length);
  return std::log(static_cast<double>(k + 1)) / std::log(static_cast<double>(length));
}

// gamma of WarmupDecayLR for k >= N.
double DecayShare(const Schedule& schedule, int64_t k) {
  return Ratio(std::max<int64_t>(0, schedule.total_num_steps - k), StepsAfterWarmup(schedule));
}

// Of WarmupLR and WarmupDecayLR, which differ in gamma after the warm-up.
double WarmupRate(const Schedule& schedule, int64_t k) {
  double gamma = 1;
  if (k < 0) {
    gamma = 0;
  } else if (k < WarmupLength(schedule)) {
    gamma = WarmupShare(schedule, k);
  } else if (schedule.kind == Kind::kWarmupDecay) {
    gamma = DecayShare(schedule, k);
  }
  return schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * gamma;
}

// rho of WarmupCosineLR.
double CosineShare(const Schedule& schedule, int64_t k) {
  if (k < 0) return 0;
  const int64_t length = WarmupLength(schedule);
  if (k < length) return schedule.warmup_min_ratio + (1 - schedule.warmup_min_ratio) * WarmupShare(schedule, k);
  const double progress = std::min(1.0, Ratio(k - length + 1, StepsAfterWarmup(schedule)));
  const double height = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return schedule.cos_min_ratio + (1 - schedule.cos_min_ratio) * height;
}

int64_t CycleLength(const Cycle& cycle) { return cycle.first_steps + cycle.second_steps; }

bool IsInCycle(const Cycle& cycle, int64_t k) { return k < CycleLength(cycle); }

// sigma. Stairs are floors of an exact quotient, not of one rounded before: 49 * (1.0 / 49) is below 1.
double CycleHeight(const Cycle& cycle, int64_t step) {
  const int64_t place = step % CycleLength(cycle);
  const bool rises = place <= cycle.first_steps;
  const int64_t part = rises ? place : CycleLength(cycle) - place;
  const int64_t whole = rises ? cycle.first_steps : cycle.second_steps;
  const int64_t stairs = rises ? cycle.first_stairs : cycle.second_stairs;
  if (stairs == 0) return Ratio(part, whole);
  const __int128 product = static_cast<__int128>(stairs) * part;  // both may be 2^40
  return Ratio(static_cast<int64_t>(product / whole), stairs);
}

double CycleRate(const Cycle& cycle, int64_t step) {
  if (IsInCycle(cycle, LastCall(step))) {
    return cycle.min_lr + (cycle.max_lr - cycle.min_lr) * CycleHeight(cycle, step);
  }
  if (cycle.decay_steps == 0) return cycle.min_lr;
  return cycle.min_lr / (1 + cycle.decay_lr_rate * Ratio(step - CycleLength(cycle), cycle.decay_steps));
}

double CycleBeta1(const Cycle& cycle, int64_t step) {
  if (step == 0) return cycle.min_momentum;
  if (!IsInCycle(cycle, LastCall(step))) return cycle.max_momentum;
  return cycle.max_momentum - (cycle.max_momentum - cycle.min_momentum) * CycleHeight(cycle, step);
}

// lr is what the schedule says to all groups. A config whose own is 0 has no group with another.
double ShareOfGroup(const contract::RunConfig& config, double group_lr, double lr) {
  if (group_lr == config.params.lr) return lr;
  return lr * (group_lr / config.params.lr);
}

[[noreturn]] void FailUnknown(Kind kind) {
  contract::Fail(contract::ErrorCode::kUnsupported, "scheduler.type: the schedule of number " +
                                                        std::to_string(static_cast<int>(kind)) +
                                                        " is not known; allowed: those of docs/semantics.md");
}

}  // namespace

double LearningRate(const contract::RunConfig& config, double group_lr, int64_t step) {
  const Schedule& schedule = config.schedule;
  switch (schedule.kind) {
    case Kind::kConstant:
      return group_lr;
    case Kind::kWarmup:
    case Kind::kWarmupDecay:
      return ShareOfGroup(config, group_lr, WarmupRate(schedule, LastCall(step)));
    case Kind::kWarmupCosine:
      return group_lr * CosineShare(schedule, LastCall(step));
    case Kind::kOneCycle:
      return ShareOfGroup(config, group_lr, CycleRate(schedule.cycle, step));
  }
  FailUnknown(schedule.kind);
}

contract::BetaPair BetasOf(const contract::RunConfig& config, const contract::BetaPair& own, int64_t step) {
  const Schedule& schedule = config.schedule;
  switch (schedule.kind) {
    case Kind::kConstant:
    case Kind::kWarmup:
    case Kind::kWarmupDecay:
    case Kind::kWarmupCosine:
      return own;
    case Kind::kOneCycle:
      return schedule.cycle.moves_momentum ? contract::BetaPair{CycleBeta1(schedule.cycle, step), kCycleBeta2} : own;
  }
  FailUnknown(schedule.kind);
}

}  // namespace plumbline::optimized
