// SPDX-License-Identifier: Apache-2.0
// Implements lion.h.
#include "reference/optimizer/lion.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

double Sign(double x) {
  if (x > 0) return 1;
  return x < 0 ? -1 : 0;
}

}  // namespace

LionResult Lion(const Matrix& gradient, const Matrix& moment, const Matrix& master, double lr, double weight_decay,
                const contract::OptimizerParams& params) {
  contract::Check(gradient.SameShape(master) && moment.SameShape(master), "Lion: equal shapes");
  LionResult result{moment, master};
  for (int64_t i = 0; i < master.numel(); ++i) {
    const double g = gradient[i];
    const double direction = Sign(params.beta1 * moment[i] + (1 - params.beta1) * g);
    result.master[i] = master[i] * (1 - lr * weight_decay) - lr * direction;
    result.moment[i] = params.beta2 * moment[i] + (1 - params.beta2) * g;
  }
  return result;
}

}  // namespace plumbline::reference
