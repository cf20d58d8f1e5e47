// SPDX-License-Identifier: Apache-2.0
// Matrices of reproducible values for tests, drawn from the contract's streams, and inner products for adjoint tests.
#pragma once

#include <cstdint>

#include "conformance/contract/random_stream.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// Integers in [−bound, bound]; `stream` tells matrices of one test apart.
inline Matrix RandomIntegers(int64_t stream, int64_t rows, int64_t cols, int64_t bound) {
  Matrix matrix(rows, cols);
  for (int64_t i = 0; i < matrix.numel(); ++i) {
    const uint32_t word = contract::Draw(/*seed=*/7, contract::Site::kInitialWeight, 0, stream, i);
    matrix[i] = static_cast<double>(contract::Below(word, 2 * bound + 1) - bound);
  }
  return matrix;
}

// Reals in [−scale, scale), on a grid of 2^-31 · scale.
inline Matrix RandomReals(int64_t stream, int64_t rows, int64_t cols, double scale) {
  Matrix matrix(rows, cols);
  for (int64_t i = 0; i < matrix.numel(); ++i) {
    const uint32_t word = contract::Draw(/*seed=*/8, contract::Site::kInitialWeight, 0, stream, i);
    matrix[i] = (static_cast<double>(word) / 2147483648.0 - 1) * scale;
  }
  return matrix;
}

// ⟨a, b⟩
inline double Inner(const Matrix& a, const Matrix& b) {
  double sum = 0;
  const Matrix product = Hadamard(a, b);
  for (int64_t i = 0; i < product.numel(); ++i) sum += product[i];
  return sum;
}

// a + b and a − b
inline Matrix Plus(const Matrix& a, const Matrix& b) {
  Matrix result = a;
  for (int64_t i = 0; i < a.numel(); ++i) result[i] += b[i];
  return result;
}
inline Matrix Minus(const Matrix& a, const Matrix& b) {
  Matrix result = a;
  for (int64_t i = 0; i < a.numel(); ++i) result[i] -= b[i];
  return result;
}

}  // namespace plumbline::reference
