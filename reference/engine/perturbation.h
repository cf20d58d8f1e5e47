// SPDX-License-Identifier: Apache-2.0
// One unit added on purpose, to measure amplification (docs/formats.md, `perturbation`): says what to add to what in
// which step. Knows no model; the trainer calls it at the five places where a unit may go in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "conformance/contract/case_file.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

class Perturber {
 public:
  // Nothing is perturbed without a perturbation.
  Perturber(std::optional<contract::Perturbation> perturbation, const contract::ExactSpec& spec)
      : perturbation_(std::move(perturbation)), spec_(spec) {}

  // The tensor as the perturbation leaves it in this step: itself, unless it is the one that is named.
  // Errors: InvalidArgument if the index is outside the tensor, or a weight has no room for delta nor for −delta.
  Matrix Gradient(int64_t step, const std::string& tensor, const Matrix& d) const;
  Matrix Moment(int64_t step, const std::string& tensor, const Matrix& m) const;
  Matrix Master(int64_t step, const std::string& tensor, const Matrix& u) const;
  Matrix Weight(int64_t step, const std::string& tensor, const Matrix& w) const;

  // What the step counter is higher by in this step.
  int64_t CounterOffset(int64_t step) const;

 private:
  bool Hits(contract::Perturbation::Kind kind, int64_t step, const std::string& tensor, const Matrix& matrix) const;

  std::optional<contract::Perturbation> perturbation_;
  contract::ExactSpec spec_;
};

}  // namespace plumbline::reference
