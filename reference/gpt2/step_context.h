// SPDX-License-Identifier: Apache-2.0
// What every layer of the model needs in one step, as in any real family.
#pragma once

#include "conformance/contract/model_spec.h"
#include "reference/real/step_context.h"

namespace plumbline::reference::gpt2 {

using StepContext = RealStepContext<contract::Gpt2Spec>;

}  // namespace plumbline::reference::gpt2
