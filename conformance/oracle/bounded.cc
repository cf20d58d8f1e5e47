// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bounded.h"

#include <cmath>

#include "conformance/oracle/same_number.h"

namespace plumbline::conformance {

bool Bounded::Holds(double stored) const {
  if (!std::isfinite(value)) return SameNumber(stored, value);
  return std::isfinite(stored) && std::abs(stored - value) <= bound;
}

}  // namespace plumbline::conformance
