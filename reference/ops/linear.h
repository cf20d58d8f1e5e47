// SPDX-License-Identifier: Apache-2.0
// A linear map with bias and its adjoint, docs/semantics.md. Weights are [in, out], so rows are multiplied from the
// left.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// y = x W + b
//   x      [rows, in]
//   weight [in, out]  W
//   bias   [1, out]   b, added to each row
//   y      [rows, out]
Matrix LinearForward(const Matrix& x, const Matrix& weight, const Matrix& bias);

struct LinearBackwardResult {
  Matrix dx;       // [rows, in]  dy Wᵀ
  Matrix dweight;  // [in, out]   xᵀ dy
  Matrix dbias;    // [1, out]    Σ of dy over its rows
};

//   dy [rows, out]
LinearBackwardResult LinearBackward(const Matrix& dy, const Matrix& x, const Matrix& weight);

}  // namespace plumbline::reference
