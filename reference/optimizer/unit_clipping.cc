// SPDX-License-Identifier: Apache-2.0
// Implements unit_clipping.h.
#include "reference/optimizer/unit_clipping.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

size_t NumUnits(const Matrix& x, contract::UnitShape units) {
  switch (units) {
    case contract::UnitShape::kWhole:
      return 1;
    case contract::UnitShape::kRows:
      return static_cast<size_t>(x.rows());
    case contract::UnitShape::kColumns:
      return static_cast<size_t>(x.cols());
  }
  contract::Fail(contract::ErrorCode::kInternal, "a shape of units that is not known");
}

// The unit that an element belongs to.
size_t UnitOf(int64_t row, int64_t col, contract::UnitShape units) {
  if (units == contract::UnitShape::kRows) return static_cast<size_t>(row);
  return units == contract::UnitShape::kColumns ? static_cast<size_t>(col) : 0;
}

}  // namespace

std::vector<double> UnitNorms(const Matrix& x, contract::UnitShape units) {
  std::vector<double> norms(NumUnits(x, units), 0.0);
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t c = 0; c < x.cols(); ++c) norms[UnitOf(r, c, units)] += x(r, c) * x(r, c);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

Matrix ClipUnits(const Matrix& gradient, const Matrix& master, contract::UnitShape units, double ratio, double eps) {
  contract::Check(gradient.SameShape(master), "ClipUnits: equal shapes");
  const std::vector<double> gradient_norms = UnitNorms(gradient, units);
  const std::vector<double> master_norms = UnitNorms(master, units);
  Matrix result = gradient;
  for (int64_t r = 0; r < gradient.rows(); ++r) {
    for (int64_t c = 0; c < gradient.cols(); ++c) {
      const size_t unit = UnitOf(r, c, units);
      const double limit = ratio * std::max(master_norms[unit], eps);
      if (gradient_norms[unit] > limit) result(r, c) = gradient(r, c) * (limit / gradient_norms[unit]);
    }
  }
  return result;
}

}  // namespace plumbline::reference
