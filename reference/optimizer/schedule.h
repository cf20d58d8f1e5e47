// SPDX-License-Identifier: Apache-2.0
// The schedules of docs/semantics.md, "Schedules", as functions of the step alone: s counts from 0 and k = s − 1.
// N = max(2, warmup_num_steps), S = total_num_steps. What a group makes of them is in parameter_groups.h.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/contract/run_config.h"

namespace plumbline::reference {

// γ of WarmupLR:  0 for k < 0,   1 for k ≥ N,   else w(k) = k / N (linear) or ln(k + 1) / ln N (logarithmic)
double WarmupFactor(const contract::Schedule& schedule, int64_t step);

// γ of WarmupDecayLR:  that of WarmupLR for k < N,   else max(0, (S − k) / max(1, S − N))
double WarmupDecayFactor(const contract::Schedule& schedule, int64_t step);

// ρ of WarmupCosineLR, with r = warmup_min_ratio and c = cos_min_ratio:
//   0 for k < 0,   r + (1 − r) · w(k) for k < N,
//   else c + (1 − c) · (1 + cos(π · min(1, (k − N + 1) / max(1, S − N)))) / 2
double WarmupCosineRatio(const contract::Schedule& schedule, int64_t step);

// σ of OneCycle, with F = first_steps, G = second_steps and c = s mod (F + G):
//   c / F for c ≤ F,   else (F + G − c) / G;   with n > 0 stairs in its half, floor(n σ) / n of the exact σ
// F, G ≥ 1.
double CycleFactor(const contract::Cycle& cycle, int64_t step);

// The lr of OneCycle:
//   min + (max − min) · σ for k < F + G,   else min / (1 + decay_lr_rate · (s − F − G) / decay_steps)
// or min where decay_steps is 0.
double CycleRate(const contract::Cycle& cycle, int64_t step);

// β₁ of OneCycle:
//   min_momentum in step 0,   max_momentum − (max_momentum − min_momentum) · σ for k < F + G,   else max_momentum
double CycleMomentum(const contract::Cycle& cycle, int64_t step);

// The betas that a OneCycle which moves momentum sets for every group: CycleMomentum and 0.99. None where the schedule
// leaves betas alone. SGD has none, and its momentum stays.
std::optional<contract::BetaPair> ScheduledBetas(const contract::Schedule& schedule, int64_t step);

// Errors, of all that read a schedule's kind: Unsupported for one that is not known here.
[[noreturn]] void RejectKind(contract::Schedule::Kind kind);

}  // namespace plumbline::reference
