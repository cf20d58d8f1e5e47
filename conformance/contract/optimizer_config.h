// SPDX-License-Identifier: Apache-2.0
// The keys `optimizer`, `param_groups`, `gradient_clipping` and `adaptive_clipping` of a config (docs/config.md).
#pragma once

#include <string>

#include "conformance/contract/run_config.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {

void ParseOptimizer(const JsonValue& optimizer, RunConfig& config);

// What only a real optimizer understands; after ParseOptimizer.
void ParseGroups(const JsonValue& groups, RunConfig& config);
void ParseAdaptiveClipping(const JsonValue& clipping, RunConfig& config);

// Canonical: every key that the optimizer has, resolved.
std::string OptimizerJson(const RunConfig& config);
std::string GroupsJson(const RunConfig& config);
std::string ToJson(const AdaptiveClipping& clipping);  // not of kNone, which has no key

}  // namespace plumbline::contract
