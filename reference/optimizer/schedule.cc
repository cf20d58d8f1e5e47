// SPDX-License-Identifier: Apache-2.0
// Implements schedule.h.
#include "reference/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

int64_t WarmupSteps(const contract::Schedule& schedule) { return std::max<int64_t>(2, schedule.warmup_num_steps); }

// w(k), for 0 ≤ k < N.
double WarmupShare(const contract::Schedule& schedule, int64_t k) {
  const auto n = static_cast<double>(WarmupSteps(schedule));
  return schedule.linear ? static_cast<double>(k) / n : std::log(static_cast<double>(k + 1)) / std::log(n);
}

// part / whole, for 0 ≤ part ≤ whole; with stairs, rounded down to one. All three are below 2^42, so their product is
// made in 128 bits: in floating point 49 · (1 / 49) is below 1, a stair too low.
double StairShare(int64_t part, int64_t whole, int64_t stairs) {
  if (stairs == 0) return static_cast<double>(part) / static_cast<double>(whole);
  const auto climbed = static_cast<int64_t>(static_cast<__int128>(stairs) * part / whole);
  return static_cast<double>(climbed) / static_cast<double>(stairs);
}

int64_t CycleSteps(const contract::Cycle& cycle) { return cycle.first_steps + cycle.second_steps; }

// k < F + G: the cycle is left a step after its lowest point, s = F + G.
bool InCycle(const contract::Cycle& cycle, int64_t step) { return step - 1 < CycleSteps(cycle); }

}  // namespace

double WarmupFactor(const contract::Schedule& schedule, int64_t step) {
  const int64_t k = step - 1;
  if (k < 0) return 0;
  return k < WarmupSteps(schedule) ? WarmupShare(schedule, k) : 1;
}

double WarmupDecayFactor(const contract::Schedule& schedule, int64_t step) {
  const int64_t n = WarmupSteps(schedule);
  const int64_t k = step - 1;
  if (k < n) return WarmupFactor(schedule, step);
  const auto left = static_cast<double>(schedule.total_num_steps - k);
  return std::max(0.0, left / static_cast<double>(std::max<int64_t>(1, schedule.total_num_steps - n)));
}

double WarmupCosineRatio(const contract::Schedule& schedule, int64_t step) {
  const int64_t n = WarmupSteps(schedule);
  const int64_t k = step - 1;
  if (k < 0) return 0;
  if (k < n) return schedule.warmup_min_ratio + (1 - schedule.warmup_min_ratio) * WarmupShare(schedule, k);
  const auto decay_steps = static_cast<double>(std::max<int64_t>(1, schedule.total_num_steps - n));
  const double decayed = std::min(1.0, static_cast<double>(k - n + 1) / decay_steps);
  return schedule.cos_min_ratio + (1 - schedule.cos_min_ratio) * (1 + std::cos(std::numbers::pi * decayed)) / 2;
}

double CycleFactor(const contract::Cycle& cycle, int64_t step) {
  const int64_t c = step % CycleSteps(cycle);
  if (c <= cycle.first_steps) return StairShare(c, cycle.first_steps, cycle.first_stairs);
  return StairShare(CycleSteps(cycle) - c, cycle.second_steps, cycle.second_stairs);
}

double CycleRate(const contract::Cycle& cycle, int64_t step) {
  if (InCycle(cycle, step)) return cycle.min_lr + (cycle.max_lr - cycle.min_lr) * CycleFactor(cycle, step);
  if (cycle.decay_steps == 0) return cycle.min_lr;
  const auto after = static_cast<double>(step - CycleSteps(cycle));
  return cycle.min_lr / (1 + cycle.decay_lr_rate * after / static_cast<double>(cycle.decay_steps));
}

double CycleMomentum(const contract::Cycle& cycle, int64_t step) {
  if (step == 0) return cycle.min_momentum;
  if (!InCycle(cycle, step)) return cycle.max_momentum;
  return cycle.max_momentum - (cycle.max_momentum - cycle.min_momentum) * CycleFactor(cycle, step);
}

std::optional<contract::BetaPair> ScheduledBetas(const contract::Schedule& schedule, int64_t step) {
  constexpr double kSecondBeta = 0.99;
  switch (schedule.kind) {
    case contract::Schedule::Kind::kConstant:
    case contract::Schedule::Kind::kWarmup:
    case contract::Schedule::Kind::kWarmupDecay:
    case contract::Schedule::Kind::kWarmupCosine:
      return std::nullopt;
    case contract::Schedule::Kind::kOneCycle:
      if (!schedule.cycle.moves_momentum) return std::nullopt;
      return contract::BetaPair{CycleMomentum(schedule.cycle, step), kSecondBeta};
  }
  RejectKind(schedule.kind);
}

void RejectKind(contract::Schedule::Kind kind) {
  contract::Fail(contract::ErrorCode::kUnsupported,
                 "config.scheduler.type is number " + std::to_string(static_cast<int>(kind)) +
                     "; the reference knows none, WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle");
}

}  // namespace plumbline::reference
