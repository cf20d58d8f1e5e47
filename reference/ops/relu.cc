// SPDX-License-Identifier: Apache-2.0
// Implements relu.h.
#include "reference/ops/relu.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {

Matrix ReluForward(const Matrix& y) {
  Matrix r(y.rows(), y.cols());
  for (int64_t i = 0; i < y.numel(); ++i) r[i] = y[i] > 0 ? y[i] : 0;
  return r;
}

Matrix ReluBackward(const Matrix& dr, const Matrix& y) {
  contract::Check(dr.SameShape(y), "ReluBackward: equal shapes");
  Matrix dy(y.rows(), y.cols());
  for (int64_t i = 0; i < y.numel(); ++i) dy[i] = y[i] > 0 ? dr[i] : 0;
  return dy;
}

}  // namespace plumbline::reference
