// SPDX-License-Identifier: Apache-2.0
// The matrix product, and with Transpose its own adjoint: of c = a b it is da = dc bᵀ and db = aᵀ dc.
#pragma once

#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// value[r, c] = Σ_k a[r, k] · b[k, c],   magnitude[r, c] = Σ_k |a[r, k] · b[k, c]|
//   a       [rows, inner]
//   b       [inner, cols]
//   result  [rows, cols]
// Terms are added with k ascending.
Sum MatMul(const Matrix& a, const Matrix& b);

}  // namespace plumbline::reference
