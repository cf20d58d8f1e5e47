// SPDX-License-Identifier: Apache-2.0
// Which ZeRO stage each parameter has, where `zero_optimization.layer_stages` gives layers stages of their own. Names
// and integers only. Source: docs/formats.md, "Layers of different stages".
#pragma once

#include <cstdint>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::contract {

// Its layer's, or that of all. A frozen parameter, which no stage shards, has one too.
int64_t StageOf(const RunConfig& config, const ParameterSpec& parameter);

// The largest stage of a parameter that is trained.
int64_t HighestStage(const RunConfig& config, const ModelSpec& model);

}  // namespace plumbline::contract
