// SPDX-License-Identifier: Apache-2.0
// The softmax of each row over the keys that a query may see, and its adjoint, docs/semantics.md.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// p[a, b] = exp(s[a, b]) / Σ_{c ≤ a} exp(s[a, c]) for b ≤ a, else 0
// The row's largest visible score is subtracted from all before exp, which changes no value and avoids overflow.
//   scores [T, T]  s; what is above the diagonal is not read
//   result [T, T]  p
Matrix CausalSoftmaxForward(const Matrix& scores);

// ds[a, b] = p[a, b] · (dp[a, b] − Σ_{c ≤ a} dp[a, c] p[a, c]) for b ≤ a, else 0
//   dp [T, T]; what is above the diagonal is not read
//   p  [T, T]  the forward's result
Matrix CausalSoftmaxBackward(const Matrix& dp, const Matrix& p);

}  // namespace plumbline::reference
