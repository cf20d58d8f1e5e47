// SPDX-License-Identifier: Apache-2.0
// The global norm of a gradient, whether it is finite, and the factor that clips it, docs/semantics.md, "One step"
// (DeepSpeed, PyTorch). Every tensor is passed once: a tied parameter is one tensor, a frozen one has no gradient.
#pragma once

#include <vector>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

// ‖g‖₂ = sqrt(Σ g²) over all elements of all tensors
double GlobalNorm(const std::vector<Matrix>& gradients);

// Whether no element is NaN or infinite.
bool AllFinite(const std::vector<Matrix>& gradients);

// What g is multiplied by: c / (‖g‖ + 1e-6) where c > 0 and that is below 1, else 1.   c = gradient_clipping
double ClipFactor(double norm, double gradient_clipping);

// factor · g
Matrix Scaled(const Matrix& gradient, double factor);

}  // namespace plumbline::reference
