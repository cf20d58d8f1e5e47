// SPDX-License-Identifier: Apache-2.0
// Implements matmul.h.
#include "reference/ops/matmul.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {

Sum MatMul(const Matrix& a, const Matrix& b) {
  contract::Check(a.cols() == b.rows(), "MatMul: columns of a equal rows of b");
  Sum result(a.rows(), b.cols());
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t k = 0; k < a.cols(); ++k) {
      for (int64_t c = 0; c < b.cols(); ++c) {
        const double term = a(r, k) * b(k, c);
        result.value(r, c) += term;
        result.magnitude(r, c) += std::abs(term);
      }
    }
  }
  return result;
}

}  // namespace plumbline::reference
