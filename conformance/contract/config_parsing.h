// SPDX-License-Identifier: Apache-2.0
// What all parts of a config's parser share: which keys an object may have, and numbers within bounds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "conformance/contract/strict_json.h"

namespace plumbline::contract {

inline constexpr int64_t kMaxCount = int64_t{1} << 40;  // of elements, samples, steps

// The object at `path` of a config ("" is the config itself, "optimizer.params" the parameters) has the keys `built`,
// and those of known_keys.h with what these allow. InvalidArgument for others, with the nearest key or, where none is
// near, those of `built`; and for "auto" where it is not resolved.
void CheckKeys(const JsonValue& object, std::span<const std::string_view> built, std::string_view path);

bool IsAuto(const JsonValue& value);

// A number in [min, max); `allowed` says so in words.
double NumberIn(const JsonValue& value, double min, double max, std::string_view allowed);

double NotNegative(const JsonValue& value);  // and below 1e30
double Positive(const JsonValue& value);     // more than 0 and below 1e30
double Share(const JsonValue& value);        // in [0, 1)

}  // namespace plumbline::contract
