// SPDX-License-Identifier: Apache-2.0
// Clipping by the history of norms, docs/semantics.md, "Clipping" (the statistics are those of Kumar et al. 2025,
// ZClip). Knows one step: norm ‖g‖, and n, μ and σ² before it. A skipped step is none of its steps.
#pragma once

#include "conformance/contract/norm_history.h"
#include "conformance/contract/run_config.h"

namespace plumbline::reference {

// What g is multiplied by: τ / (‖g‖ + 1e-6) where n ≥ N and that is below 1, else 1.
//   τ = μ + z σ,   z = deviations,   N = warmup_steps
double HistoryFactor(const contract::AdaptiveClipping& clipping, const contract::NormHistory& before, double norm);

// n, μ and σ² after the step, with x = ‖g‖ for n < N, else min(‖g‖, τ):
//   n < N:   δ = x − μ      μ ← μ + δ / (n + 1)      σ² ← (n σ² + δ (x − μ)) / (n + 1)   with the new μ
//   n ≥ N:   μ ← α μ + (1 − α) x      σ² ← α σ² + (1 − α) (x − μ)²   with the new μ;   α = decay
//   n ← n + 1
contract::NormHistory HistoryAfter(const contract::AdaptiveClipping& clipping, const contract::NormHistory& before,
                                   double norm);

}  // namespace plumbline::reference
