// SPDX-License-Identifier: Apache-2.0
// What every layer of the model needs in one step, as in any real family.
#pragma once

#include "conformance/contract/model_spec.h"
#include "reference/real/step_context.h"

namespace plumbline::reference::llama {

using StepContext = RealStepContext<contract::LlamaSpec>;

}  // namespace plumbline::reference::llama
