// SPDX-License-Identifier: Apache-2.0
// Implements fold.h.
#include "reference/ops/fold.h"

#include "conformance/contract/error.h"
#include "reference/ops/modulo.h"

namespace plumbline::reference {

Fold Fold::Triangle(double b) {
  contract::Check(b > 0, "Fold: b > 0");
  return Fold(b);
}

Fold Fold::Identity() { return Fold(0); }

double Fold::Value(double x) const {
  if (is_identity()) return x;
  const double b = bound_;
  const double p = Mod(x + b, 4 * b);
  return p <= 2 * b ? p - b : 3 * b - p;
}

double Fold::Slope(double x) const {
  if (is_identity()) return 1;
  const double b = bound_;
  const double p = Mod(x + b, 4 * b);
  return p < 2 * b ? 1 : -1;
}

Matrix Fold::Value(const Matrix& x) const {
  Matrix result(x.rows(), x.cols());
  for (int64_t i = 0; i < x.numel(); ++i) result[i] = Value(x[i]);
  return result;
}

Matrix Fold::Slope(const Matrix& x) const {
  Matrix result(x.rows(), x.cols());
  for (int64_t i = 0; i < x.numel(); ++i) result[i] = Slope(x[i]);
  return result;
}

}  // namespace plumbline::reference
