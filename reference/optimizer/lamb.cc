// SPDX-License-Identifier: Apache-2.0
// Implements lamb.h.
#include "reference/optimizer/lamb.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

double Norm(const Matrix& x) {
  double sum_squares = 0;
  for (int64_t i = 0; i < x.numel(); ++i) sum_squares += x[i] * x[i];
  return std::sqrt(sum_squares);
}

}  // namespace

LambResult Lamb(const Matrix& gradient, const Matrix& moment, const Matrix& second_moment, const Matrix& master,
                int64_t t, double lr, double weight_decay, const contract::OptimizerParams& params) {
  contract::Check(gradient.SameShape(master) && moment.SameShape(master) && second_moment.SameShape(master),
                  "Lamb: equal shapes");
  contract::Check(t >= 1, "Lamb: t counts from 1");
  LambResult result{moment, second_moment, master};
  Matrix direction(master.rows(), master.cols());
  const double correction = 1 - std::pow(params.beta1, static_cast<double>(t));
  const double second_correction = 1 - std::pow(params.beta2, static_cast<double>(t));
  for (int64_t i = 0; i < master.numel(); ++i) {
    const double g = gradient[i];
    const double m = params.beta1 * moment[i] + (1 - params.beta1) * g;
    const double v = params.beta2 * second_moment[i] + (1 - params.beta2) * g * g;
    result.moment[i] = m;
    result.second_moment[i] = v;
    direction[i] = (m / correction) / (std::sqrt(v / second_correction) + params.eps) + weight_decay * master[i];
  }
  const double ratio = TrustRatio(Norm(master), Norm(direction), params);
  for (int64_t i = 0; i < master.numel(); ++i) result.master[i] = master[i] - lr * ratio * direction[i];
  return result;
}

double TrustRatio(double master_norm, double direction_norm, const contract::OptimizerParams& params) {
  if (master_norm == 0 || direction_norm == 0) return 1;
  return std::max(params.min_coeff, std::min(params.max_coeff, master_norm / direction_norm));
}

}  // namespace plumbline::reference
