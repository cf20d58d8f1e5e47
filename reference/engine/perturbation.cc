// SPDX-License-Identifier: Apache-2.0
// Implements perturbation.h.
#include "reference/engine/perturbation.h"

#include <cmath>

#include "conformance/contract/error.h"
#include "reference/ops/modulo.h"

namespace plumbline::reference {

using Kind = contract::Perturbation::Kind;

bool Perturber::Hits(Kind kind, int64_t step, const std::string& tensor, const Matrix& matrix) const {
  if (!perturbation_ || perturbation_->kind != kind || perturbation_->step != step || perturbation_->tensor != tensor)
    return false;
  if (perturbation_->index < 0 || perturbation_->index >= matrix.numel())
    contract::Fail(contract::ErrorCode::kInvalidArgument, "perturbation.index is " +
                                                              std::to_string(perturbation_->index) + "; " + tensor +
                                                              " has " + std::to_string(matrix.numel()) + " elements");
  return true;
}

Matrix Perturber::Gradient(int64_t step, const std::string& tensor, const Matrix& d) const {
  Matrix result = d;
  if (Hits(Kind::kGradient, step, tensor, d)) result[perturbation_->index] += static_cast<double>(perturbation_->delta);
  return result;
}

Matrix Perturber::Moment(int64_t step, const std::string& tensor, const Matrix& m) const {
  Matrix result = m;
  if (Hits(Kind::kMoment, step, tensor, m)) result[perturbation_->index] += static_cast<double>(perturbation_->delta);
  return result;
}

Matrix Perturber::Master(int64_t step, const std::string& tensor, const Matrix& u) const {
  Matrix result = u;
  if (!Hits(Kind::kMaster, step, tensor, u)) return result;
  double& element = result[perturbation_->index];
  element = Mod(element + static_cast<double>(perturbation_->delta), static_cast<double>(spec_.master_modulus()));
  return result;
}

Matrix Perturber::Weight(int64_t step, const std::string& tensor, const Matrix& w) const {
  Matrix result = w;
  if (!Hits(Kind::kWeight, step, tensor, w)) return result;
  const auto bound = static_cast<double>(spec_.weight_bound);
  const auto delta = static_cast<double>(perturbation_->delta);
  double& element = result[perturbation_->index];
  if (std::abs(element + delta) <= bound) {
    element += delta;
  } else if (std::abs(element - delta) <= bound) {
    element -= delta;
  } else {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "perturbation.delta is " + std::to_string(perturbation_->delta) +
                       "; neither it nor its negative keeps " + tensor + " in the weight bound");
  }
  return result;
}

int64_t Perturber::CounterOffset(int64_t step) const {
  const bool counts = perturbation_ && perturbation_->kind == Kind::kCounter && step >= perturbation_->step;
  return counts ? perturbation_->delta : 0;
}

}  // namespace plumbline::reference
