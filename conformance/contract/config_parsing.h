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

// Real numbers that every engine can hold in fp32: neither they nor their inverses become 0, subnormal or Inf there
// (its normal numbers go from 1.2e-38 to 3.4e38), and no share becomes 1, whose difference from 1 is divided by.
double Positive(const JsonValue& value);     // from 1e-30 to below 1e30
double NotNegative(const JsonValue& value);  // or 0
double Share(const JsonValue& value);        // from 0 to 0.9999999

}  // namespace plumbline::contract
