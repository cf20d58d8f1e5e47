// SPDX-License-Identifier: Apache-2.0
// What the tests of docs/config.md share: the rows of its tables, and a config that has one key of a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plumbline::contract::testing {

using Words = std::vector<std::string>;

// Cells of the rows that begin with a key, in the section with this title; the key without its backticks.
std::vector<Words> Rows(const std::string& title);

// A config of eight samples with this optimizer (and schedule, for a key of one), and the key with this value (JSON
// text) or without any. Objects on the way to the key have what they require besides.
std::string ConfigWith(const std::string& key, const std::string& optimizer, const std::string& schedule,
                       const std::optional<std::string>& value);

}  // namespace plumbline::contract::testing
