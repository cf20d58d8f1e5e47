// SPDX-License-Identifier: Apache-2.0
// What the schedule makes of a step: the learning rate of a group, and the betas of AdamW. Pure functions of the
// configuration and of the number of the step, from 0; they know neither tensors nor how many updates were made.
// Source: docs/semantics.md, "Schedules".
#pragma once

#include <cstdint>

#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

// Of a group whose own rate is group_lr. A schedule that sets one rate for all keeps the group's ratio to the
// optimizer's rate: InvalidArgument if the optimizer's is then 0 and the group's is not. Unsupported: a schedule that
// is not one of docs/semantics.md.
double LearningRate(const contract::RunConfig& config, double group_lr, int64_t step);

struct Betas {
  double beta1 = 0;
  double beta2 = 0;
};

// Of all groups: the optimizer's, unless the schedule moves them. Unsupported as above.
Betas BetasOf(const contract::RunConfig& config, int64_t step);

}  // namespace plumbline::optimized
