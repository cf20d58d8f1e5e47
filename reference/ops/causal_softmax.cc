// SPDX-License-Identifier: Apache-2.0
// Implements causal_softmax.h.
#include "reference/ops/causal_softmax.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {

Matrix CausalSoftmaxForward(const Matrix& scores) {
  contract::Check(scores.rows() == scores.cols(), "causal softmax: as many keys as queries");
  Matrix p(scores.rows(), scores.cols());
  for (int64_t a = 0; a < scores.rows(); ++a) {
    double largest = scores(a, 0);
    for (int64_t b = 1; b <= a; ++b) largest = std::max(largest, scores(a, b));
    double sum = 0;
    for (int64_t b = 0; b <= a; ++b) {
      p(a, b) = std::exp(scores(a, b) - largest);
      sum += p(a, b);
    }
    for (int64_t b = 0; b <= a; ++b) p(a, b) /= sum;
  }
  return p;
}

Matrix CausalSoftmaxBackward(const Matrix& dp, const Matrix& p) {
  contract::Check(dp.SameShape(p), "causal softmax: dp has the shape of p");
  Matrix ds(p.rows(), p.cols());
  for (int64_t a = 0; a < p.rows(); ++a) {
    double inner = 0;
    for (int64_t b = 0; b <= a; ++b) inner += dp(a, b) * p(a, b);
    for (int64_t b = 0; b <= a; ++b) ds(a, b) = p(a, b) * (dp(a, b) - inner);
  }
  return ds;
}

}  // namespace plumbline::reference
