// SPDX-License-Identifier: Apache-2.0
// Implements sgd.h.
#include "reference/optimizer/sgd.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {

SgdMomentumResult SgdMomentum(const Matrix& gradient, const Matrix& moment, const Matrix& master, int64_t t, double lr,
                              double weight_decay, double momentum, bool nesterov) {
  contract::Check(gradient.SameShape(master) && moment.SameShape(master), "SgdMomentum: equal shapes");
  contract::Check(t >= 1, "SgdMomentum: t counts from 1");
  SgdMomentumResult result{moment, master};
  for (int64_t i = 0; i < master.numel(); ++i) {
    const double g = gradient[i] + weight_decay * master[i];
    const double b = t == 1 ? g : momentum * moment[i] + g;
    result.moment[i] = b;
    result.master[i] = master[i] - lr * (nesterov ? g + momentum * b : b);
  }
  return result;
}

Matrix Sgd(const Matrix& gradient, const Matrix& master, double lr, double weight_decay) {
  contract::Check(gradient.SameShape(master), "Sgd: equal shapes");
  Matrix result(master.rows(), master.cols());
  for (int64_t i = 0; i < master.numel(); ++i) result[i] = master[i] - lr * (gradient[i] + weight_decay * master[i]);
  return result;
}

}  // namespace plumbline::reference
