// SPDX-License-Identifier: Apache-2.0
// The loss scale of fp16: which one a step uses, and how a dynamic one moves. Pure functions, equal on all ranks since
// all skip together. Source: docs/semantics.md, "fp16", whose scaler is that of DeepSpeed's
// runtime/fp16/loss_scaler.py.
#pragma once

#include "conformance/contract/loss_scale.h"
#include "conformance/contract/run_config.h"

namespace plumbline::optimized {

// The scale never grows beyond this: its inverse is still a normal float, so that dividing by it is exact but for
// subnormal results.
inline constexpr double kMaxLossScale = 0x1p126;

// Of the next step, a power of two: the scaler's if the scale is dynamic, else the config's; 1 where storage is not
// fp16.
double LossScale(const contract::RunConfig& config, const contract::LossScaler& scaler);

// The scaler after a step that used its scale and was skipped for an overflow, or was not.
contract::LossScaler AfterStep(const contract::DynamicLossScale& settings, const contract::LossScaler& scaler,
                               bool skipped);

}  // namespace plumbline::optimized
