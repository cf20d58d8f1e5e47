// SPDX-License-Identifier: Apache-2.0
// Implements liveness.h.
#include "reference/certificate/liveness.h"

#include <utility>

#include "conformance/contract/error.h"

namespace plumbline::reference {

Liveness::Liveness(std::vector<std::string> tensors) {
  for (std::string& tensor : tensors) shares_.push_back({.tensor = std::move(tensor)});
}

void Liveness::Note(size_t tensor, const Matrix& gradient, const Matrix& weight_before, const Matrix& weight_after) {
  contract::Check(gradient.SameShape(weight_before) && gradient.SameShape(weight_after), "liveness: equal shapes");
  int64_t nonzero = 0;
  int64_t moved = 0;
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    if (gradient[i] != 0) ++nonzero;
    if (weight_before[i] != weight_after[i]) ++moved;
  }
  Shares& shares = shares_.at(tensor);
  const auto numel = static_cast<double>(gradient.numel());
  shares.steps += 1;
  shares.nonzero_gradient += static_cast<double>(nonzero) / numel;
  shares.moving_weight += static_cast<double>(moved) / numel;
}

std::vector<contract::Certificate::Liveness> Liveness::Means() const {
  std::vector<contract::Certificate::Liveness> means;
  for (const Shares& shares : shares_) {
    const auto steps = static_cast<double>(shares.steps > 0 ? shares.steps : 1);
    means.push_back({shares.tensor, shares.nonzero_gradient / steps, shares.moving_weight / steps});
  }
  return means;
}

}  // namespace plumbline::reference
