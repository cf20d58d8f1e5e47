// SPDX-License-Identifier: Apache-2.0
// Implements gelu.h.
#include "reference/ops/gelu.h"

#include <cmath>
#include <numbers>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

constexpr double kCubic = 0.044715;

double Slope() { return std::sqrt(2 / std::numbers::pi); }

}  // namespace

Matrix GeluForward(const Matrix& x) {
  Matrix y(x.rows(), x.cols());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double z = Slope() * (x[i] + kCubic * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(z));
  }
  return y;
}

Matrix GeluBackward(const Matrix& dy, const Matrix& x) {
  contract::Check(dy.SameShape(x), "GeluBackward: equal shapes");
  Matrix dx(x.rows(), x.cols());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double tanh_z = std::tanh(Slope() * (x[i] + kCubic * x[i] * x[i] * x[i]));
    const double dz = Slope() * (1 + 3 * kCubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1 + tanh_z) + 0.5 * x[i] * (1 - tanh_z * tanh_z) * dz);
  }
  return dx;
}

}  // namespace plumbline::reference
