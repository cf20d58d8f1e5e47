// SPDX-License-Identifier: Apache-2.0
// Implements rotary.h.
#include "reference/ops/rotary.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

void CheckShape(const Matrix& y, const RotaryShape& shape) {
  contract::Check(shape.positions > 0 && y.rows() % shape.positions == 0, "rotary: whole samples");
  contract::Check(shape.head_width > 0 && shape.head_width % 2 == 0, "rotary: an even head width");
  contract::Check(y.cols() % shape.head_width == 0, "rotary: whole heads");
  contract::Check(shape.theta > 0, "rotary: a positive theta");
}

// t · θ^(−2i/D)
double Angle(const RotaryShape& shape, int64_t position, int64_t i) {
  const double exponent = -2 * static_cast<double>(i) / static_cast<double>(shape.head_width);
  return static_cast<double>(position) * std::pow(shape.theta, exponent);
}

// `direction` is 1, or −1 for the opposite angles.
Matrix Turned(const Matrix& y, const RotaryShape& shape, double direction) {
  CheckShape(y, shape);
  const int64_t half = shape.head_width / 2;
  Matrix result(y.rows(), y.cols());
  for (int64_t n = 0; n < y.rows(); ++n) {
    for (int64_t head = 0; head < y.cols() / shape.head_width; ++head) {
      for (int64_t i = 0; i < half; ++i) {
        const double a = direction * Angle(shape, n % shape.positions, i);
        const int64_t first = head * shape.head_width + i;
        const int64_t second = first + half;
        result(n, first) = y(n, first) * std::cos(a) - y(n, second) * std::sin(a);
        result(n, second) = y(n, second) * std::cos(a) + y(n, first) * std::sin(a);
      }
    }
  }
  return result;
}

}  // namespace

Matrix RotaryForward(const Matrix& y, const RotaryShape& shape) { return Turned(y, shape, 1); }

Matrix RotaryBackward(const Matrix& dy, const RotaryShape& shape) { return Turned(dy, shape, -1); }

}  // namespace plumbline::reference
