// SPDX-License-Identifier: Apache-2.0
// Rotary positions and their adjoint, docs/semantics.md (Su et al. 2021, eq. 34, with the pairs of channels half a head
// apart). A rotation is orthogonal: its adjoint is the rotation by the opposite angles, and it needs no tape.
#pragma once

#include <cstdint>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct RotaryShape {
  int64_t positions = 0;   // T > 0: row n is position n mod T of its sample, counted from 0
  int64_t head_width = 0;  // D, even: heads are contiguous blocks of D channels
  double theta = 0;        // θ > 0
};

// In each head, for each i < D/2, with a = t · θ^(−2i/D) at position t:
//   result[i]       = y[i] cos a − y[i + D/2] sin a
//   result[i + D/2] = y[i + D/2] cos a + y[i] sin a
//   y      [samples · T, heads · D]
//   result [samples · T, heads · D]
Matrix RotaryForward(const Matrix& y, const RotaryShape& shape);

// The same with −a in the place of a.   dy [samples · T, heads · D] of the result → of y
Matrix RotaryBackward(const Matrix& dy, const RotaryShape& shape);

}  // namespace plumbline::reference
