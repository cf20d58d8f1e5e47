// SPDX-License-Identifier: Apache-2.0
// The product that is gated by SiLU, the inner part of SwiGLU, and its adjoint, docs/semantics.md (Shazeer 2020, eq. 5,
// with β = 1).
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// y = silu(gate) ⊙ up,   silu(z) = z σ(z),   σ(z) = 1 / (1 + e^(−z))
//   gate, up [rows, cols] → [rows, cols]
Matrix SwiGluForward(const Matrix& gate, const Matrix& up);

struct SwiGluBackwardResult {
  Matrix dgate, dup;  // [rows, cols]
};

// dgate = dy ⊙ up ⊙ silu'(gate),   silu'(z) = σ(z) (1 + z (1 − σ(z)))      dup = dy ⊙ silu(gate)
//   dy, gate, up [rows, cols]
SwiGluBackwardResult SwiGluBackward(const Matrix& dy, const Matrix& gate, const Matrix& up);

}  // namespace plumbline::reference
