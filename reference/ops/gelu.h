// SPDX-License-Identifier: Apache-2.0
// GELU in its tanh form and its adjoint, docs/semantics.md (Hendrycks, Gimpel 2016, section 2; GPT-2).
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// y = 0.5 x (1 + tanh(z)),   z = sqrt(2/π) (x + 0.044715 x³)   [rows, cols] → [rows, cols]
Matrix GeluForward(const Matrix& x);

// dx = dy ⊙ (0.5 (1 + tanh(z)) + 0.5 x (1 − tanh(z)²) dz/dx),   dz/dx = sqrt(2/π) (1 + 3 · 0.044715 x²)
//   dy, x [rows, cols] → [rows, cols]
Matrix GeluBackward(const Matrix& dy, const Matrix& x);

}  // namespace plumbline::reference
