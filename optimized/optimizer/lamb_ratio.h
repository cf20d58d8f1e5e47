// SPDX-License-Identifier: Apache-2.0
// By how much LAMB scales the step of a parameter. A pure function. Source: You et al. 2020, algorithm 2, with
// DeepSpeed's limits; docs/semantics.md, "One step" (rho).
#pragma once

#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

// The norm of the parameter, before the update, over that of its direction, within [min_coeff, max_coeff]; 1 where one
// of the norms is 0. NaN where the direction's is.
double LambRatio(const contract::OptimizerParams& params, double master_norm, double direction_norm);

}  // namespace plumbline::optimized
