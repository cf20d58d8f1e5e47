// SPDX-License-Identifier: Apache-2.0
// LAMB, docs/semantics.md (You et al. 2020, algorithm 2; the limits of the ratio are DeepSpeed's): one tensor's update.
#pragma once

#include <cstdint>

#include "conformance/contract/run_config.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct LambResult {
  Matrix moment;         // m
  Matrix second_moment;  // v
  Matrix master;         // p
};

// m ← β₁ m + (1 − β₁) g      v ← β₂ v + (1 − β₂) g²
// u ← (m / (1 − β₁^t)) / (sqrt(v / (1 − β₂^t)) + ε) + λ p
// p ← p − lr · ρ · u,      ρ = TrustRatio(‖p‖, ‖u‖) with the p of before
//   gradient g, moment m, second_moment v, master p [rows, cols], the whole parameter
//   t    1 in the first update
//   lr, weight_decay λ: the group's; β₁, β₂, ε and the limits: params.beta1, beta2, eps, min_coeff, max_coeff
LambResult Lamb(const Matrix& gradient, const Matrix& moment, const Matrix& second_moment, const Matrix& master,
                int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params);

// ρ: ‖p‖ / ‖u‖, not above max_coeff and not below min_coeff; 1, whatever the limits, where ‖p‖ or ‖u‖ is 0.
double TrustRatio(double master_norm, double direction_norm, const contract::OptimizerParams& params);

}  // namespace plumbline::reference
