// SPDX-License-Identifier: Apache-2.0
// The working weight that a master weight stands for: W = floor(U / 8) − w (docs/exact-family.md, "Optimizers").
#pragma once

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// m = 8(2w + 1): the master weight lives in [0, m).
double MasterModulus(double weight_bound);

// W = floor(U / 8) − w, in [−w, w].   master [rows, cols] → [rows, cols]
Matrix WorkingWeight(const Matrix& master, double weight_bound);

}  // namespace plumbline::reference
