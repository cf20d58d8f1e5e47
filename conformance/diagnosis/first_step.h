// SPDX-License-Identifier: Apache-2.0
// Of single steps that were judged together: the first in which a gradient is wrong, and how wrong rounding alone would
// make it. Limits and verdicts are the oracle's.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "conformance/contract/model_spec.h"
#include "conformance/oracle/exact_check.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// The first step in which the gradient's error, in units of the plain engines' error in the same step, is at least half
// of the largest of all steps, or kBeyondRounding: a mistake that is made in every step is named by its first, one that
// begins later by that. Of the region that the divergence's text begins with (gradient_region.h), else of the whole
// tensor. Not finite is larger than all. Without a tensor that is known, the divergence's own step.
inline constexpr double kBeyondRounding = 8;
int64_t FirstStepOf(const contract::ModelSpec& model, const Yardstick& yardstick, std::span<const StepSight> candidate,
                    const Divergence& divergence);

// What a finding of the step with the largest error adds where an earlier one is the first; nothing where they are one.
std::string OtherStepText(int64_t worst, int64_t first);

// Euclidean distance of the plain engine farther from the truth, in the divergence's gradient and step; 0 where it is
// about something else.
double NoiseOf(const contract::ModelSpec& model, const Yardstick& yardstick, const Divergence& divergence);

}  // namespace plumbline::conformance
