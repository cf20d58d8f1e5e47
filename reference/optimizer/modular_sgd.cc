// SPDX-License-Identifier: Apache-2.0
// Implements modular_sgd.h.
#include "reference/optimizer/modular_sgd.h"

#include "conformance/contract/error.h"
#include "reference/ops/modulo.h"
#include "reference/optimizer/working_weight.h"

namespace plumbline::reference {

Matrix ModularSgd(const Matrix& gradient, const Matrix& master, double weight_bound) {
  contract::Check(gradient.SameShape(master), "ModularSgd: equal shapes");
  const double m = MasterModulus(weight_bound);
  Matrix result(master.rows(), master.cols());
  for (int64_t i = 0; i < master.numel(); ++i) result[i] = Mod(master[i] - Mod(gradient[i], m), m);
  return result;
}

}  // namespace plumbline::reference
