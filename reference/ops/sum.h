// SPDX-License-Identifier: Apache-2.0
// A matrix of sums, each element with the sum of the absolute values of its terms. Every op that adds returns one, so
// that the certificate (docs/exact-family.md, "Certificate") sees exactly the sums the model makes and no op knows the
// certificate. Partial sums in any order and any grouping are bounded by the magnitude: that is what makes it a
// certificate.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct Sum {
  Matrix value;
  Matrix magnitude;  // Σ|terms|, same shape, ≥ |value|

  Sum() = default;
  Sum(int64_t rows, int64_t cols) : value(rows, cols), magnitude(rows, cols) {}

  // The terms of `other` join the terms of this sum, element by element.
  Sum& operator+=(const Sum& other);
};

// a + b, each element a sum of two terms.   a, b [rows, cols] → [rows, cols]
Sum Add(const Matrix& a, const Matrix& b);

}  // namespace plumbline::reference
