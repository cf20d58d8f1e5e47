// SPDX-License-Identifier: Apache-2.0
// Entries of `param_groups` that no parameter of a model belongs to: what they set would be lost without a word.
#pragma once

#include <cstddef>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::contract {

// Their indices, ascending. A parameter belongs to the first entry that fits its name, frozen or not.
std::vector<size_t> IdleGroups(const std::vector<ParameterGroup>& groups, const std::vector<ParameterSpec>& parameters);

}  // namespace plumbline::contract
