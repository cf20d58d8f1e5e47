// SPDX-License-Identifier: Apache-2.0
// ModularMomentum, docs/exact-family.md, "Optimizers": an optimizer with a moment and a step counter that never rounds.
// For given D and t the map (M, U) → (M', U') is a bijection: no error in the state can die out.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct ModularMomentumResult {
  Matrix moment;     // M, in [−14, 14]
  Matrix master;     // U, in [0, m)
  Matrix unwrapped;  // M + D + t as written, before any reduction, for the certificate
};

// M ← wrap(M + (D mod 29) + (t mod 29); 14)
// U ← (U − M − (t mod m)) mod m,   m = 8(2w + 1), with the new M
//   gradient D, moment M, master U [rows, cols];  t is 1 in the first step
ModularMomentumResult ModularMomentum(const Matrix& gradient, const Matrix& moment, const Matrix& master, double t,
                                      double weight_bound);

}  // namespace plumbline::reference
