// SPDX-License-Identifier: Apache-2.0
// Implements softmax_attention.h.
#include "reference/ops/softmax_attention.h"

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/ops/causal_softmax.h"
#include "reference/ops/inverted_dropout.h"
#include "reference/ops/matmul.h"

namespace plumbline::reference {
namespace {

// a / sqrt(D)
Matrix DividedByRoot(const Matrix& a, int64_t head_width) {
  Matrix result(a.rows(), a.cols());
  for (int64_t i = 0; i < a.numel(); ++i) result[i] = a[i] / std::sqrt(static_cast<double>(head_width));
  return result;
}

}  // namespace

SoftmaxAttentionForwardResult SoftmaxAttentionForward(const Matrix& q, const Matrix& k, const Matrix& v,
                                                      const std::optional<Matrix>& mask, double drop) {
  contract::Check(q.SameShape(k) && q.SameShape(v), "attention: q, k and v of one head have equal shapes");
  SoftmaxAttentionForwardResult result;
  result.probabilities = CausalSoftmaxForward(DividedByRoot(MatMul(q, Transpose(k)).value, q.cols()));
  result.dropped = InvertedDrop(result.probabilities, mask, drop);
  result.out = MatMul(result.dropped, v).value;
  return result;
}

SoftmaxAttentionBackwardResult SoftmaxAttentionBackward(const Matrix& dout, const Matrix& q, const Matrix& k,
                                                        const Matrix& v, const std::optional<Matrix>& mask, double drop,
                                                        const SoftmaxAttentionForwardResult& forward) {
  const Matrix dv = MatMul(Transpose(forward.dropped), dout).value;
  const Matrix dp = InvertedDrop(MatMul(dout, Transpose(v)).value, mask, drop);
  const Matrix ds = DividedByRoot(CausalSoftmaxBackward(dp, forward.probabilities), q.cols());
  return {MatMul(ds, k).value, MatMul(Transpose(ds), q).value, dv};
}

}  // namespace plumbline::reference
