// SPDX-License-Identifier: Apache-2.0
// Clipping by units, docs/semantics.md, "Clipping" (Brock et al. 2021, equation 3): one parameter's gradient.
#pragma once

#include <vector>

#include "conformance/contract/model_spec.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// ‖x_i‖ of each unit i: of the whole, of each row or of each column.   x [rows, cols] → [1], [rows] or [cols]
std::vector<double> UnitNorms(const Matrix& x, contract::UnitShape units);

// g_i · κ max(‖w_i‖, ε) / ‖g_i‖ for each unit i with ‖g_i‖ > κ max(‖w_i‖, ε); the others as they are.
//   gradient g, master w [rows, cols] → [rows, cols];   w before the update;   ratio κ, eps ε > 0
Matrix ClipUnits(const Matrix& gradient, const Matrix& master, contract::UnitShape units, double ratio, double eps);

}  // namespace plumbline::reference
