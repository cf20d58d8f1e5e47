// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/unit_factors.h"

#include <algorithm>
#include <cmath>

namespace plumbline::conformance {
namespace {

using contract::UnitShape;

size_t UnitOfElement(const contract::ParameterSpec& parameter, size_t element) {
  const auto cols = static_cast<size_t>(parameter.cols);
  if (parameter.units == UnitShape::kRows) return element / cols;
  return parameter.units == UnitShape::kColumns ? element % cols : 0;
}

}  // namespace

std::vector<double> UnitFactors(const contract::ParameterSpec& parameter, const contract::AdaptiveClipping& rule,
                                const std::vector<double>& gradient, const std::vector<double>& master, size_t begin,
                                size_t end) {
  if (end == 0) end = gradient.size();
  if (master.size() != gradient.size()) return {};
  struct Squares {
    double gradient = 0;
    double master = 0;
  };
  std::vector<Squares> units(static_cast<size_t>(parameter.num_units()));
  for (size_t i = begin; i < end; ++i) {
    Squares& unit = units[UnitOfElement(parameter, i)];
    unit.gradient += gradient[i] * gradient[i];
    unit.master += master[i] * master[i];
  }
  std::vector<double> factors(gradient.size(), 1);
  for (size_t i = begin; i < end; ++i) {
    const Squares& unit = units[UnitOfElement(parameter, i)];
    const double norm = std::sqrt(unit.gradient);
    const double allowed = rule.ratio * std::max(std::sqrt(unit.master), rule.eps);
    if (norm > allowed) factors[i] = allowed / norm;
  }
  return factors;
}

}  // namespace plumbline::conformance
