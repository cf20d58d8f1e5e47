// SPDX-License-Identifier: Apache-2.0
// The all_reduces of sums of squares in a step, in their order (docs/formats.md, "Buckets and the ledger").
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// Bytes of each; none where every rank has whole gradients, or is alone.
std::vector<int64_t> NormReductions(const contract::ModelSpec& model, const contract::RunConfig& config);

}  // namespace plumbline::conformance
