// SPDX-License-Identifier: Apache-2.0
// Lion, docs/semantics.md (Chen et al. 2023, program 1): one tensor's update. It has one moment and no corrections, so
// it does not know how many updates were made.
#pragma once

#include "conformance/contract/run_config.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct LionResult {
  Matrix moment;  // m
  Matrix master;  // p
};

// p ← p · (1 − lr · λ)
// p ← p − lr · sign(β₁ m + (1 − β₁) g)      with the m of before, and sign(0) = 0
// m ← β₂ m + (1 − β₂) g
//   gradient g, moment m, master p [rows, cols]
//   lr, weight_decay λ: the group's; β₁ and β₂: params.beta1, beta2
LionResult Lion(const Matrix& gradient, const Matrix& moment, const Matrix& master, double lr, double weight_decay,
                const contract::OptimizerParams& params);

}  // namespace plumbline::reference
