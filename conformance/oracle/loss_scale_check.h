// SPDX-License-Identifier: Apache-2.0
// The dynamic loss scale of fp16 against its formula (docs/semantics.md, "fp16"), which needs nothing but whether each
// step was skipped, as the engine itself says. Whether it should have been is for other checks.
#pragma once

#include <string>

#include "conformance/contract/loss_scale.h"
#include "conformance/oracle/real_check.h"
#include "conformance/oracle/run_digest.h"

namespace plumbline::conformance {

// What a step leaves of the scaler.
contract::LossScaler NextLossScaler(const contract::DynamicLossScale& settings, contract::LossScaler before,
                                    bool skipped);

// "[1024, 7, -1, 2]": scale, steps, last overflow, hysteresis.
std::string ScalerText(const contract::LossScaler& scaler);

// "scale": what each step of the run reports of the scaler is what the one before left and the formula make of it.
// before: the state of the first step.
RealResult CheckLossScale(const contract::DynamicLossScale& settings, const contract::LossScaler& before,
                          const RunDigest& run);

// "scale", of a run in which a plain engine skips no step with a larger scale than any of its own: VACUOUS where the
// engine skips one, since the two were not doing the same then.
reports::CheckRecord CheckNothingSkipped(const RunDigest& run);

}  // namespace plumbline::conformance
