// SPDX-License-Identifier: Apache-2.0
// Implements matrix.h with plain loops.
#include "reference/ops/matrix.h"

#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::reference {

Matrix::Matrix(int64_t rows, int64_t cols, std::vector<double> values)
    : rows_(rows), cols_(cols), values_(std::move(values)) {
  contract::Check(static_cast<int64_t>(values_.size()) == rows * cols, "a matrix has rows * cols values");
}

Matrix Transpose(const Matrix& a) {
  Matrix result(a.cols(), a.rows());
  for (int64_t r = 0; r < a.rows(); ++r)
    for (int64_t c = 0; c < a.cols(); ++c) result(c, r) = a(r, c);
  return result;
}

Matrix Hadamard(const Matrix& a, const Matrix& b) {
  contract::Check(a.SameShape(b), "Hadamard: equal shapes");
  Matrix result(a.rows(), a.cols());
  for (int64_t i = 0; i < a.numel(); ++i) result[i] = a[i] * b[i];
  return result;
}

}  // namespace plumbline::reference
