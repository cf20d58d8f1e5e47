// SPDX-License-Identifier: Apache-2.0
// Implements swiglu.h.
#include "reference/ops/swiglu.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

// Where e^(−z) overflows this is 0, as it should be.
double Sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

}  // namespace

Matrix SwiGluForward(const Matrix& gate, const Matrix& up) {
  contract::Check(gate.SameShape(up), "SwiGLU: equal shapes");
  Matrix y(gate.rows(), gate.cols());
  for (int64_t i = 0; i < gate.numel(); ++i) y[i] = gate[i] * Sigmoid(gate[i]) * up[i];
  return y;
}

SwiGluBackwardResult SwiGluBackward(const Matrix& dy, const Matrix& gate, const Matrix& up) {
  contract::Check(dy.SameShape(gate) && dy.SameShape(up), "SwiGLU: equal shapes");
  SwiGluBackwardResult result{Matrix(dy.rows(), dy.cols()), Matrix(dy.rows(), dy.cols())};
  for (int64_t i = 0; i < dy.numel(); ++i) {
    const double sigmoid = Sigmoid(gate[i]);
    result.dgate[i] = dy[i] * up[i] * sigmoid * (1 + gate[i] * (1 - sigmoid));
    result.dup[i] = dy[i] * gate[i] * sigmoid;
  }
  return result;
}

}  // namespace plumbline::reference
