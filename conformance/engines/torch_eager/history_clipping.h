// SPDX-License-Identifier: Apache-2.0
// Clipping by the history of norms (docs/semantics.md, "Clipping"; the statistics are those of Kumar et al. 2025,
// ZClip): its threshold, and what it remembers. It neither sees gradients nor keeps a state.
#pragma once

#include <optional>

#include "conformance/contract/norm_history.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance::torch_eager {

// The norm above which a step is clipped; none while norms are only counted.
std::optional<double> Threshold(const contract::AdaptiveClipping& clipping, const contract::NormHistory& history);

// What is remembered after a step that was not skipped, whose gradient had this norm before clipping.
contract::NormHistory WithNorm(const contract::AdaptiveClipping& clipping, const contract::NormHistory& history,
                               double norm);

}  // namespace plumbline::conformance::torch_eager
