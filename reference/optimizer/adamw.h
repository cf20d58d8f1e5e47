// SPDX-License-Identifier: Apache-2.0
// AdamW, docs/semantics.md (Loshchilov, Hutter 2019, algorithm 2; PyTorch): one tensor's update.
#pragma once

#include <cstdint>

#include "conformance/contract/run_config.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct AdamWResult {
  Matrix moment;         // m
  Matrix second_moment;  // v
  Matrix master;         // p
};

// p ← p · (1 − lr · λ)
// m ← β₁ m + (1 − β₁) g      v ← β₂ v + (1 − β₂) g²
// p ← p − lr · (m / (1 − β₁^t)) / (sqrt(v / (1 − β₂^t)) + ε)
//   gradient g, moment m, second_moment v, master p [rows, cols]
//   t    1 in the first update
//   lr, weight_decay λ: the group's; β₁, β₂ and ε: params.beta1, beta2, eps
// A schedule may move the betas: moments and corrections are then both made with those of this update.
AdamWResult AdamW(const Matrix& gradient, const Matrix& moment, const Matrix& second_moment, const Matrix& master,
                  int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params);

}  // namespace plumbline::reference
