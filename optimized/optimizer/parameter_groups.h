// SPDX-License-Identifier: Apache-2.0
// Which learning rate and weight decay a parameter has in a step: groups by name, and the schedule. Pure functions of
// the configuration; no state, no tensors. Source: docs/semantics.md, "One step" (groups, schedules).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

struct GroupOptions {
  double lr = 0;  // before the schedule
  double weight_decay = 0;
};

// Of the first entry of config.groups whose pattern fits the name; what it does not set, and every parameter without
// such an entry, has the optimizer's.
GroupOptions OptionsOf(const contract::RunConfig& config, const std::string& parameter_name);

// The learning rate in step `step` (from 0) of a group whose own rate is group_lr. Without a schedule it is constant.
// With WarmupLR the group's share of the optimizer's rate is kept. InvalidArgument if there is a schedule, the
// optimizer's rate is 0 and the group's is not.
double LearningRate(const contract::RunConfig& config, double group_lr, int64_t step);

// The factor of every gradient: clipping / (norm + 1e-6) where that is below 1, else 1. clipping = 0: no clipping.
double ClipCoefficient(double clipping, double norm);

}  // namespace plumbline::optimized
