// SPDX-License-Identifier: Apache-2.0
// The same model of a real family written with other weights: every tensor times a power of two, such that these cancel
// in what the model computes. In binary floating point each of its operations commutes with them as long as nothing
// underflows, so loss and gradients are known to the last bit: the gradient of a weight times 2^e is times 2^-e. Pure.
#pragma once

#include <vector>

#include "conformance/contract/case_file.h"
#include "conformance/contract/model_spec.h"

namespace plumbline::conformance {

// [canonical tensor][column]: the exponent of the power of two that weights are multiplied by.
using Exponents = std::vector<std::vector<int>>;

Exponents RescalingOf(const contract::ModelSpec& model);

// The residual stream is scaled too, and so is what norms add to its variance.
contract::ModelSpec RescaledModel(contract::ModelSpec model);

// Master weights only: moments do not enter a gradient.
void Rescale(const Exponents& exponents, std::vector<contract::RealParameterState>& state);

}  // namespace plumbline::conformance
