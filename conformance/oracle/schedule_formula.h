// SPDX-License-Identifier: Apache-2.0
// Learning rates and betas of a step, from the words of docs/semantics.md, "Schedules", with bounds for an engine that
// computes its schedule in fp32. Shared with no engine.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/run_config.h"
#include "conformance/oracle/bounded.h"

namespace plumbline::conformance {

// lr of each group in step s, in the order of RealStep::lr: 0 for the default group, 1 + i for param_groups[i].
std::vector<Bounded> ScheduledLr(const contract::RunConfig& config, int64_t step);

// What a group's betas are in step s: its own or the optimizer's, unless a cycle moves them.
struct Betas {
  double first = 0;
  double second = 0;
  // In roundings, relative to the beta itself: one where it is a number of the config.
  double first_units = 1;
};

Betas ScheduledBetas(const contract::RunConfig& config, size_t group, int64_t step);

}  // namespace plumbline::conformance
