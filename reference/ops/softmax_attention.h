// SPDX-License-Identifier: Apache-2.0
// Causal attention of one head over one sample with dropout on the probabilities, and its adjoint, docs/semantics.md
// (Vaswani et al. 2017, eq. 1).
#pragma once

#include <optional>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// Letters: T positions, D head width.
struct SoftmaxAttentionForwardResult {
  Matrix probabilities;  // [T, T]  p = softmax(s)
  Matrix dropped;        // [T, T]  drop(p)
  Matrix out;            // [T, D]  o
};

// s = q kᵀ / sqrt(D),   p = softmax(s) over the keys up to the query,   o = drop(p) v
//   q, k, v [T, D]
//   mask    [T, T] or none
//   drop    probability of being dropped
SoftmaxAttentionForwardResult SoftmaxAttentionForward(const Matrix& q, const Matrix& k, const Matrix& v,
                                                      const std::optional<Matrix>& mask, double drop);

struct SoftmaxAttentionBackwardResult {
  Matrix dq, dk, dv;  // [T, D]
};

// dv = drop(p)ᵀ do     dp = drop(do vᵀ)     ds = softmax'(dp) / sqrt(D)     dq = ds k     dk = dsᵀ q
//   dout [T, D]  do
SoftmaxAttentionBackwardResult SoftmaxAttentionBackward(const Matrix& dout, const Matrix& q, const Matrix& k,
                                                        const Matrix& v, const std::optional<Matrix>& mask, double drop,
                                                        const SoftmaxAttentionForwardResult& forward);

}  // namespace plumbline::reference
