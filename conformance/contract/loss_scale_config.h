// SPDX-License-Identifier: Apache-2.0
// The object `fp16` of a config. Private to the config library: the parser hands it what is inside.
#pragma once

#include <string>

#include "conformance/contract/run_config.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {

// Checks every key, and sets storage and scale where fp16 is enabled; nothing else of the object is kept then or
// otherwise. InvalidArgument where another storage type is set already.
void ParseFp16(const JsonValue& fp16, RunConfig& config);

// `, "fp16": {...}` where it is enabled, else nothing.
std::string Fp16Json(const RunConfig& config);

}  // namespace plumbline::contract
