// SPDX-License-Identifier: Apache-2.0
// What clipping by units multiplies each element of a gradient by, with the places where engines go wrong. For
// predictions only, as update_recipe.h.
#pragma once

#include <cstddef>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// Units as `parameter` says; norms are of elements in [begin, end) alone, where end is more than 0.
std::vector<double> UnitFactors(const contract::ParameterSpec& parameter, const contract::AdaptiveClipping& rule,
                                const std::vector<double>& gradient, const std::vector<double>& master,
                                size_t begin = 0, size_t end = 0);

}  // namespace plumbline::conformance
