// SPDX-License-Identifier: Apache-2.0
// LayerNorm over the channels of a row and its adjoint, docs/semantics.md (Ba, Kiros, Hinton 2016, eq. 4).
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct LayerNormForwardResult {
  Matrix y;                  // [rows, width]
  Matrix normalized;         // [rows, width]  x̂ = (x − mean) · rstd
  Matrix inverse_deviation;  // [rows, 1]      rstd = 1 / sqrt(var + ε)
};

// y = (x − mean) / sqrt(var + ε) · weight + bias,   var = Σ (x − mean)² / width (biased)
//   x            [rows, width], width > 0
//   weight, bias [1, width]
//   epsilon      > 0
LayerNormForwardResult LayerNormForward(const Matrix& x, const Matrix& weight, const Matrix& bias, double epsilon);

struct LayerNormBackwardResult {
  Matrix dx;       // [rows, width]
  Matrix dweight;  // [1, width]
  Matrix dbias;    // [1, width]
};

// dbias = Σ_rows dy      dweight = Σ_rows dy ⊙ x̂
// dx̂ = dy ⊙ weight       dx = rstd · (dx̂ − mean(dx̂) − x̂ · mean(dx̂ ⊙ x̂)),   means over the channels of a row
//   dy [rows, width]
LayerNormBackwardResult LayerNormBackward(const Matrix& dy, const Matrix& weight,
                                          const LayerNormForwardResult& forward);

}  // namespace plumbline::reference
