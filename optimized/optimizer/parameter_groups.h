// SPDX-License-Identifier: Apache-2.0
// Which learning rate, betas and weight decay a parameter begins with, by the name that it has, whether its gradient is
// clipped, and by how much. Pure functions; no state, no tensors. Source: docs/semantics.md, "One step" (groups,
// clipping).
#pragma once

#include <string>

#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

struct GroupOptions {
  double lr = 0;  // before the schedule (schedule.h)
  double weight_decay = 0;
  contract::BetaPair betas = {};  // before the schedule
  bool clips = true;              // false: in no norm of clipping, and multiplied by no factor
};

// Of the first entry of config.groups whose pattern fits the name; what it does not set, and every parameter without
// such an entry, has the optimizer's.
GroupOptions OptionsOf(const contract::RunConfig& config, const std::string& parameter_name);

// The factor of every gradient that is clipped: clipping / (norm + 1e-6) where that is below 1, else 1. clipping = 0:
// no clipping.
double ClipCoefficient(double clipping, double norm);

}  // namespace plumbline::optimized
