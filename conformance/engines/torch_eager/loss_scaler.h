// SPDX-License-Identifier: Apache-2.0
// The dynamic loss scale of fp16 from one step to the next (docs/semantics.md, "fp16"; the rule is DeepSpeed's). It
// neither sees gradients nor keeps a state.
#pragma once

#include "conformance/contract/loss_scale.h"

namespace plumbline::conformance::torch_eager {

// The scaler after a step, which used the scale of `before` and was skipped or not.
contract::LossScaler AfterStep(const contract::DynamicLossScale& settings, const contract::LossScaler& before,
                               bool skipped);

}  // namespace plumbline::conformance::torch_eager
