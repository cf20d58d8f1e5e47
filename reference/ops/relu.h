// SPDX-License-Identifier: Apache-2.0
// r = max(y, 0) and its adjoint. At y = 0 no gradient passes.
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// r = max(y, 0)   [rows, cols] → [rows, cols]
Matrix ReluForward(const Matrix& y);

// dy = dr ⊙ [y > 0]   dr, y [rows, cols] → [rows, cols]
Matrix ReluBackward(const Matrix& dr, const Matrix& y);

}  // namespace plumbline::reference
