// SPDX-License-Identifier: Apache-2.0
// Implements modular_momentum.h.
#include "reference/optimizer/modular_momentum.h"

#include "conformance/contract/error.h"
#include "reference/ops/modulo.h"
#include "reference/optimizer/working_weight.h"

namespace plumbline::reference {

ModularMomentumResult ModularMomentum(const Matrix& gradient, const Matrix& moment, const Matrix& master, double t,
                                      double weight_bound) {
  contract::Check(gradient.SameShape(moment) && gradient.SameShape(master), "ModularMomentum: equal shapes");
  const double m = MasterModulus(weight_bound);
  const int64_t rows = gradient.rows();
  const int64_t cols = gradient.cols();
  ModularMomentumResult result{Matrix(rows, cols), Matrix(rows, cols), Matrix(rows, cols)};
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    result.unwrapped[i] = moment[i] + gradient[i] + t;
    result.moment[i] = Wrap(moment[i] + Mod(gradient[i], 29) + Mod(t, 29), 14);
    result.master[i] = Mod(master[i] - result.moment[i] - Mod(t, m), m);
  }
  return result;
}

}  // namespace plumbline::reference
