// SPDX-License-Identifier: Apache-2.0
// Implements linear.h.
#include "reference/ops/linear.h"

#include "conformance/contract/error.h"
#include "reference/ops/matmul.h"

namespace plumbline::reference {

Matrix LinearForward(const Matrix& x, const Matrix& weight, const Matrix& bias) {
  contract::Check(bias.rows() == 1 && bias.cols() == weight.cols(), "linear: a bias for each column of the weight");
  Matrix y = MatMul(x, weight).value;
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t c = 0; c < y.cols(); ++c) y(r, c) += bias(0, c);
  return y;
}

LinearBackwardResult LinearBackward(const Matrix& dy, const Matrix& x, const Matrix& weight) {
  contract::Check(dy.rows() == x.rows() && dy.cols() == weight.cols(), "linear: dy has the shape of y");
  Matrix dbias(1, dy.cols());
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t c = 0; c < dy.cols(); ++c) dbias(0, c) += dy(r, c);
  return {MatMul(dy, Transpose(weight)).value, MatMul(Transpose(x), dy).value, dbias};
}

}  // namespace plumbline::reference
