// SPDX-License-Identifier: Apache-2.0
// Implements adam.h.
#include "reference/optimizer/adam.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {

AdamWResult Adam(const Matrix& gradient, const Matrix& moment, const Matrix& second_moment, const Matrix& master,
                 int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params) {
  contract::Check(gradient.SameShape(master), "Adam: equal shapes");
  Matrix decayed = gradient;
  for (int64_t i = 0; i < master.numel(); ++i) decayed[i] = gradient[i] + weight_decay * master[i];
  constexpr double kNoDecay = 0;
  return AdamW(decayed, moment, second_moment, master, t, lr, kNoDecay, params);
}

}  // namespace plumbline::reference
