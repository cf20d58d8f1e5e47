// SPDX-License-Identifier: Apache-2.0
// Which group a parameter belongs to, and what the group trains it with, docs/semantics.md, "Groups" and "Schedules".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/run_config.h"

namespace plumbline::reference {

// 0 for the default group, else 1 + the index of the first entry of param_groups whose pattern fits the whole name.
// Patterns are those of POSIX fnmatch without flags: *, ? and [...] also match '.' and '/'.
size_t GroupOf(const contract::RunConfig& config, const std::string& parameter);

// Whether the parameter's group is exempt from clipping (`clip` false). The default group never is.
bool IsExempt(const contract::RunConfig& config, const std::string& parameter);

// By group, the default one first: what the entry sets, else what the optimizer sets.
std::vector<double> GroupWeightDecays(const contract::RunConfig& config);

// By group, the default one first: config.params with the betas of step s. They are those that the schedule sets, in
// every group; else the entry's; else the optimizer's. lr and weight decay of a group are not in here.
// Errors: Unsupported for a schedule that is not known.
std::vector<contract::OptimizerParams> GroupParams(const contract::RunConfig& config, int64_t step);

// By group, the default one first: the learning rates in step s, counted from 0; schedule.h has the factors.
//   constant:        the group's lr
//   WarmupLR:        min + (max − min) · WarmupFactor, of all groups
//   WarmupDecayLR:   min + (max − min) · WarmupDecayFactor, of all groups
//   WarmupCosineLR:  the group's lr · WarmupCosineRatio
//   OneCycle:        CycleRate, of all groups
// What is of all groups is multiplied by (lr of the group / lr of the optimizer) where the group sets an lr; the config
// of a case has none of 0 then.
// Errors: Unsupported for a schedule that is not one of these.
std::vector<double> GroupLearningRates(const contract::RunConfig& config, int64_t step);

}  // namespace plumbline::reference
