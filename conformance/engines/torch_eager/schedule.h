// SPDX-License-Identifier: Apache-2.0
// Learning rates and groups of the real families (docs/semantics.md, "One step"): which group a parameter belongs to,
// and each group's lr at a step. Group 0 is the default group, group i is entry i - 1 of param_groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/run_config.h"

namespace plumbline::conformance::torch_eager {

int64_t GroupOf(const contract::RunConfig& config, const std::string& parameter);

double WeightDecayOf(const contract::RunConfig& config, int64_t group);

// The lr of all groups at `step`.
std::vector<double> LearningRates(const contract::RunConfig& config, int64_t step);

}  // namespace plumbline::conformance::torch_eager
