// SPDX-License-Identifier: Apache-2.0
// Attention of one query head over one sample, docs/exact-family.md, with a fold in the place of the softmax, and its
// adjoint. Which key/value head a query head reads, and the sums over the query heads that share one, belong to the
// caller.
#pragma once

#include "reference/ops/fold.h"
#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// Letters: T positions, D head width. s and t are query and key positions.
struct AttentionForwardResult {
  Sum scores;      // [T, T]  q kᵀ
  Matrix weights;  // [T, T]  a = F(q kᵀ) ⊙ causal
  Sum mix;         // [T, D]  a v
  Matrix out;      // [T, D]  o = F(a v)
};

// a = F(q kᵀ) ⊙ causal,   o = F(a v),   causal[s, t] = 1 if t ≤ s, else 0
//   q, k, v [T, D]
AttentionForwardResult AttentionForward(const Matrix& q, const Matrix& k, const Matrix& v, const Fold& f);

struct AttentionBackwardResult {
  Sum dweights;  // [T, T]  dn vᵀ, before its fold
  Sum dq;        // [T, D]  ds k, before its fold
  Sum dk;        // [T, D]  dsᵀ q: this query head's terms of dk, before the fold of the complete sum
  Sum dv;        // [T, D]  aᵀ dn: this query head's terms of dv, before the fold of the complete sum
};

// dn = do ⊙ S(a v)     da = G(dn vᵀ)     ds = da ⊙ causal ⊙ S(q kᵀ)     dq, dk, dv as above
//   dout [T, D]  do, already folded
AttentionBackwardResult AttentionBackward(const Matrix& dout, const Matrix& q, const Matrix& k, const Matrix& v,
                                          const AttentionForwardResult& forward, const Fold& f, const Fold& g);

}  // namespace plumbline::reference
