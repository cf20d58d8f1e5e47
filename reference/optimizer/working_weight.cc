// SPDX-License-Identifier: Apache-2.0
// Implements working_weight.h.
#include "reference/optimizer/working_weight.h"

#include <cmath>

namespace plumbline::reference {

double MasterModulus(double weight_bound) { return 8 * (2 * weight_bound + 1); }

Matrix WorkingWeight(const Matrix& master, double weight_bound) {
  Matrix weight(master.rows(), master.cols());
  for (int64_t i = 0; i < master.numel(); ++i) weight[i] = std::floor(master[i] / 8) - weight_bound;
  return weight;
}

}  // namespace plumbline::reference
