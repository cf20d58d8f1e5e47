// SPDX-License-Identifier: Apache-2.0
// RMSNorm over the channels of a row and its adjoint, docs/semantics.md (Zhang, Sennrich 2019, eq. 4). No mean is taken
// away and there is no bias.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct RmsNormForwardResult {
  Matrix y;             // [rows, width]
  Matrix normalized;    // [rows, width]  x̂ = x · r
  Matrix inverse_root;  // [rows, 1]      r = 1 / sqrt(mean(x²) + ε)
};

// y = x / sqrt(mean(x²) + ε) · weight,   the mean over the channels of a row
//   x       [rows, width], width > 0
//   weight  [1, width]
//   epsilon > 0
RmsNormForwardResult RmsNormForward(const Matrix& x, const Matrix& weight, double epsilon);

struct RmsNormBackwardResult {
  Matrix dx;       // [rows, width]
  Matrix dweight;  // [1, width]
};

// dweight = Σ_rows dy ⊙ x̂
// dx̂ = dy ⊙ weight       dx = r · (dx̂ − x̂ · mean(dx̂ ⊙ x̂)),   the mean over the channels of a row
//   dy [rows, width]
RmsNormBackwardResult RmsNormBackward(const Matrix& dy, const Matrix& weight, const RmsNormForwardResult& forward);

}  // namespace plumbline::reference
