// SPDX-License-Identifier: Apache-2.0
// Which parameters of family exact are gathered together under ZeRO 3, and how often in a step: derived from the words
// of docs/zero3.md and from nothing of any engine. Pure integers.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// Parameters (canonical indices, descending) that are bucketed together.
struct GatherSet {
  std::vector<size_t> parameters;
  int64_t gathers_per_step = 0;
};

// The groups in their order, then the persistent parameters as one set, if there are any. Every parameter is in one
// set.
std::vector<GatherSet> GatherSets(const contract::ExactSpec& model, const contract::RunConfig& config);

}  // namespace plumbline::conformance
