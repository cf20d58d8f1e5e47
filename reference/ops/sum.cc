// SPDX-License-Identifier: Apache-2.0
// Implements sum.h.
#include "reference/ops/sum.h"

#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {

Sum& Sum::operator+=(const Sum& other) {
  contract::Check(value.SameShape(other.value), "Sum: equal shapes");
  for (int64_t i = 0; i < value.numel(); ++i) {
    value[i] += other.value[i];
    magnitude[i] += other.magnitude[i];
  }
  return *this;
}

Sum Add(const Matrix& a, const Matrix& b) {
  contract::Check(a.SameShape(b), "Add: equal shapes");
  Sum result(a.rows(), a.cols());
  for (int64_t i = 0; i < a.numel(); ++i) {
    result.value[i] = a[i] + b[i];
    result.magnitude[i] = std::abs(a[i]) + std::abs(b[i]);
  }
  return result;
}

}  // namespace plumbline::reference
