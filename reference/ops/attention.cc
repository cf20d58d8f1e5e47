// SPDX-License-Identifier: Apache-2.0
// Implements attention.h.
#include "reference/ops/attention.h"

#include "conformance/contract/error.h"
#include "reference/ops/matmul.h"

namespace plumbline::reference {
namespace {

// a ⊙ causal
Matrix Causal(const Matrix& a_st) {
  Matrix result(a_st.rows(), a_st.cols());
  for (int64_t s = 0; s < a_st.rows(); ++s)
    for (int64_t t = 0; t < a_st.cols(); ++t) result(s, t) = t <= s ? a_st(s, t) : 0;
  return result;
}

}  // namespace

AttentionForwardResult AttentionForward(const Matrix& q, const Matrix& k, const Matrix& v, const Fold& f) {
  contract::Check(q.SameShape(k) && q.SameShape(v), "attention: q, k and v of one head have equal shapes");
  AttentionForwardResult result;
  result.scores = MatMul(q, Transpose(k));
  result.weights = Causal(f.Value(result.scores.value));
  result.mix = MatMul(result.weights, v);
  result.out = f.Value(result.mix.value);
  return result;
}

AttentionBackwardResult AttentionBackward(const Matrix& dout, const Matrix& q, const Matrix& k, const Matrix& v,
                                          const AttentionForwardResult& forward, const Fold& f, const Fold& g) {
  AttentionBackwardResult result;
  const Matrix dn = Hadamard(dout, f.Slope(forward.mix.value));
  result.dweights = MatMul(dn, Transpose(v));
  const Matrix da = g.Value(result.dweights.value);
  const Matrix ds = Hadamard(Causal(da), f.Slope(forward.scores.value));
  result.dq = MatMul(ds, k);
  result.dk = MatMul(Transpose(ds), q);
  result.dv = MatMul(Transpose(forward.weights), dn);
  return result;
}

}  // namespace plumbline::reference
