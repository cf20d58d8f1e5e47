// SPDX-License-Identifier: Apache-2.0
// Implements adamw.h.
#include "reference/optimizer/adamw.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {

AdamWResult AdamW(const Matrix& gradient, const Matrix& moment, const Matrix& second_moment, const Matrix& master,
                  int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params) {
  contract::Check(gradient.SameShape(master) && moment.SameShape(master) && second_moment.SameShape(master),
                  "AdamW: equal shapes");
  contract::Check(t >= 1, "AdamW: t counts from 1");
  AdamWResult result{moment, second_moment, master};
  const double correction = 1 - std::pow(params.beta1, static_cast<double>(t));
  const double second_correction = 1 - std::pow(params.beta2, static_cast<double>(t));
  for (int64_t i = 0; i < master.numel(); ++i) {
    const double g = gradient[i];
    const double decayed = master[i] * (1 - lr * weight_decay);
    const double m = params.beta1 * moment[i] + (1 - params.beta1) * g;
    const double v = params.beta2 * second_moment[i] + (1 - params.beta2) * g * g;
    result.moment[i] = m;
    result.second_moment[i] = v;
    result.master[i] = decayed - lr * (m / correction) / (std::sqrt(v / second_correction) + params.eps);
  }
  return result;
}

}  // namespace plumbline::reference
