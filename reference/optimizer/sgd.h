// SPDX-License-Identifier: Apache-2.0
// SGD with weight decay in the gradient and, where μ > 0, momentum or Nesterov's, docs/semantics.md (PyTorch): one
// tensor's update.
#pragma once

#include <cstdint>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct SgdMomentumResult {
  Matrix moment;  // b
  Matrix master;  // p
};

// g ← g + λ p      b ← g where t = 1, else μ b + g      p ← p − lr · b, or, with nesterov, p ← p − lr · (g + μ b)
//   gradient g, moment b, master p [rows, cols]
//   t 1 in the first update, in which b is not read;  momentum μ > 0
SgdMomentumResult SgdMomentum(const Matrix& gradient, const Matrix& moment, const Matrix& master, int64_t t, double lr,
                              double weight_decay, double momentum, bool nesterov);

// g ← g + λ p      p ← p − lr · g      → the new p
//   gradient g, master p [rows, cols]
Matrix Sgd(const Matrix& gradient, const Matrix& master, double lr, double weight_decay);

}  // namespace plumbline::reference
