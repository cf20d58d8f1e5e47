// SPDX-License-Identifier: Apache-2.0
// What the schedule makes of a step: the learning rate and the betas of a group. Pure functions of the
// configuration and of the number of the step, from 0; they know neither tensors nor how many updates were made.
// Source: docs/semantics.md, "Schedules".
#pragma once

#include <cstdint>

#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

// Of a group whose own rate is group_lr. A schedule that sets one rate for all keeps the group's ratio to the
// optimizer's rate, which is then not 0 unless the group's is. Unsupported: a schedule that is not one of
// docs/semantics.md.
double LearningRate(const contract::RunConfig& config, double group_lr, int64_t step);

// Of a group that has betas of its own: those, unless the schedule moves the betas, which it does in every group alike.
// Unsupported as above.
contract::BetaPair BetasOf(const contract::RunConfig& config, const contract::BetaPair& own, int64_t step);

}  // namespace plumbline::optimized
