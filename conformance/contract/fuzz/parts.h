// SPDX-License-Identifier: Apache-2.0
// Inputs of targets that read several files at once: the files, one after the other, between lines of eight '='.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace plumbline::contract::fuzz {

inline constexpr std::string_view kBetweenParts = "\n========\n";

// Exactly `count` parts: what is missing is empty, and what is left over belongs to the last one.
std::vector<std::string_view> Parts(std::string_view text, size_t count);

}  // namespace plumbline::contract::fuzz
