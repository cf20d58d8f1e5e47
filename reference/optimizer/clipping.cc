// SPDX-License-Identifier: Apache-2.0
// Implements clipping.h.
#include "reference/optimizer/clipping.h"

#include <cmath>

namespace plumbline::reference {

double GlobalNorm(const std::vector<Matrix>& gradients) {
  double sum_squares = 0;
  for (const Matrix& gradient : gradients)
    for (int64_t i = 0; i < gradient.numel(); ++i) sum_squares += gradient[i] * gradient[i];
  return std::sqrt(sum_squares);
}

bool AllFinite(const std::vector<Matrix>& gradients) {
  for (const Matrix& gradient : gradients)
    for (int64_t i = 0; i < gradient.numel(); ++i)
      if (!std::isfinite(gradient[i])) return false;
  return true;
}

double ClipFactor(double norm, double gradient_clipping) {
  constexpr double kEpsilon = 1e-6;
  if (gradient_clipping == 0) return 1;
  const double factor = gradient_clipping / (norm + kEpsilon);
  return factor < 1 ? factor : 1;
}

Matrix Scaled(const Matrix& gradient, double factor) {
  Matrix result(gradient.rows(), gradient.cols());
  for (int64_t i = 0; i < gradient.numel(); ++i) result[i] = factor * gradient[i];
  return result;
}

}  // namespace plumbline::reference
