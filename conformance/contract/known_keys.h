// SPDX-License-Identifier: Apache-2.0
// Keys that users of DeepSpeed write and that are no setting of ours, each declared once in the .cc file: what the
// parser makes of it, in docs/config.md and in the same three tables. A fixed key is taken with the values that say
// what every engine does anyway, and is not kept. A hint says how and not what is computed: it is checked and kept, and
// no result may depend on it. An unbuilt one is refused whatever its value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/strict_json.h"

namespace plumbline::contract {

// Path of a hint, as "zero_optimization.sub_group_size", -> its value as canonical JSON text.
using Hints = std::map<std::string, std::string>;

// `object` below is the path of an object of a config; "" is the config itself.

// Names of the keys, in the order of the tables.
std::vector<std::string_view> FixedNames(std::string_view object);
std::vector<std::string_view> HintNames(std::string_view object);
std::vector<std::string_view> UnbuiltNames(std::string_view object);

// Unsupported for an unbuilt key of the object, then for a fixed one with a value that asks for something else; the
// message names the value and what is supported. InvalidArgument where a fixed key that may have any value of a type
// has one of another type.
void CheckKnownKeys(const JsonValue& object, std::string_view path);

// Of a whole config. InvalidArgument for a value of another type or beyond its range.
Hints ParseHints(const JsonValue& root);

// `, "name": value` for each hint of the object.
std::string HintsJson(const Hints& hints, std::string_view object);

}  // namespace plumbline::contract
