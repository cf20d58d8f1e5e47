// SPDX-License-Identifier: Apache-2.0
// Learning rates and groups of the real families (docs/semantics.md, "One step" and "Schedules"): which group a
// parameter belongs to, whether it is clipped, each group's lr and betas at a step. Everything is a function of the
// step's number: nothing here counts calls. Group 0 is the default group, group i is entry i - 1 of param_groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/run_config.h"

namespace plumbline::conformance::torch_eager {

int64_t GroupOf(const contract::RunConfig& config, const std::string& parameter);

double WeightDecayOf(const contract::RunConfig& config, int64_t group);

// Whether its group takes part in clipping and in the norm of it.
bool IsClipped(const contract::RunConfig& config, const std::string& parameter);

// Whether the schedule sets one lr for all, of which a group with an lr of its own gets its share of the optimizer's
// lr: that must then be more than 0.
bool SetsOneRate(const contract::Schedule& schedule);

// The lr of all groups at `step`.
std::vector<double> LearningRates(const contract::RunConfig& config, int64_t step);

struct Betas {
  double beta1 = 0;
  double beta2 = 0;

  friend bool operator==(const Betas&, const Betas&) = default;
};

// The betas of all groups at `step`, for optimizers that have them; bias corrections are made with these.
std::vector<Betas> BetasAt(const contract::RunConfig& config, int64_t step);

}  // namespace plumbline::conformance::torch_eager
