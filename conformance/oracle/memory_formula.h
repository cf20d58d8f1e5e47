// SPDX-License-Identifier: Apache-2.0
// Peaks of memory by category, from the words of docs/zero3.md ("Memory") and from nothing of any engine: weights that
// stay gathered, a shard that is whole, a buffer too many give right numbers and are found here.
// It counts what that page counts: neither scratch memory of matrix products nor batches.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/run_config.h"

namespace plumbline::conformance {

// What each rank must report in each step: bytes by category. Every category is there, also where it has 0 bytes.
std::map<std::string, int64_t> ExpectedMemoryPeak(const contract::ModelSpec& model, const contract::RunConfig& config);

}  // namespace plumbline::conformance
