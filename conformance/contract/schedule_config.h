// SPDX-License-Identifier: Apache-2.0
// The key `scheduler` of a config: DeepSpeed's schedules by their names and keys (docs/config.md).
#pragma once

#include <string>

#include "conformance/contract/schedule.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {

// `optimizer_lr`: the rate that WarmupLR ends with where it is not told another.
Schedule ParseSchedule(const JsonValue& scheduler, double optimizer_lr);

// Canonical: every key that the type has, resolved. Not of kConstant, which has no `scheduler`.
std::string ToJson(const Schedule& schedule);

}  // namespace plumbline::contract
