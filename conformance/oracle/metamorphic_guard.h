// SPDX-License-Identifier: Apache-2.0
// The guard (guard.h) of metamorphic checks: each is made once more with one planted change in what was seen, and must
// fail. Changes are made in memory, in the variant's run, after everything was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/oracle/guard.h"
#include "conformance/oracle/metamorphic_check.h"
#include "conformance/oracle/run_digest.h"
#include "conformance/oracle/step_sight.h"

namespace plumbline::conformance {

// Arguments are those of the checks of these names (metamorphic_check.h), which passed.

void GuardSameRuns(const std::string& relation, const contract::ModelSpec& model, const RunDigest& whole,
                   const RunDigest& variant, Guard& guard);

void GuardSplitRuns(const contract::ModelSpec& model, const RunDigest& whole, const RunDigest& first,
                    const RunDigest& second, Guard& guard);

void GuardNearSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch,
                    const StepSight& whole, const StepSight& variant, Guard& guard);

void GuardSplitSteps(const contract::ModelSpec& model, int64_t batch, const StepSight& whole, const StepSight& first,
                     const StepSight& second, Guard& guard);

void GuardScaledSteps(const contract::ModelSpec& model, const std::vector<std::vector<int>>& exponents,
                      const StepSight& whole, const StepSight& scaled, Guard& guard);

void GuardShiftedSteps(const std::string& relation, const contract::ModelSpec& model, int64_t batch, const Shift& shift,
                       const StepSight& whole, const StepSight& shifted, Guard& guard);

}  // namespace plumbline::conformance
