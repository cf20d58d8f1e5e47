// SPDX-License-Identifier: Apache-2.0
// ModularSGD, docs/exact-family.md, "Optimizers": no moment and no step counter.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// U ← (U − (D mod m)) mod m,   m = 8(2w + 1)
//   gradient D, master U [rows, cols] → the new U, in [0, m)
Matrix ModularSgd(const Matrix& gradient, const Matrix& master, double weight_bound);

}  // namespace plumbline::reference
