// SPDX-License-Identifier: Apache-2.0
// Clipping by the history of norms: what is unusually large is brought down to a threshold that follows mean and
// deviation of the norms so far. Pure functions in double, equal on all ranks since the norm is. Source: Kumar et al.
// 2025 (ZClip), whose statistics these are; docs/semantics.md, "Clipping".
#pragma once

#include "conformance/contract/norm_history.h"
#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

// The factor of every gradient that is clipped, where their norm is `norm` and `history` is what was before. 1 while
// fewer than warmup_steps norms are remembered.
double HistoryCoefficient(const contract::AdaptiveClipping& options, const contract::NormHistory& history, double norm);

// The history after a step that was not skipped: with this norm, or with the threshold if that is smaller.
contract::NormHistory Remember(const contract::AdaptiveClipping& options, const contract::NormHistory& history,
                               double norm);

}  // namespace plumbline::optimized
