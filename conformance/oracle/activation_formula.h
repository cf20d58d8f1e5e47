// SPDX-License-Identifier: Apache-2.0
// Bytes of activations that a rank keeps for one micro-batch, from the words of docs/zero3.md ("Memory") and from
// nothing of any engine. The other categories of memory are memory_formula.h's.
#pragma once

#include <cstdint>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

int64_t ActivationBytes(const contract::ModelSpec& model, const contract::RunConfig& config);

}  // namespace plumbline::conformance
