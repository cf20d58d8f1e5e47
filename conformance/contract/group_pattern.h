// SPDX-License-Identifier: Apache-2.0
// The shell patterns that an entry of `param_groups` may have. No more than what POSIX fnmatch and others (Python's)
// read alike: no class of characters, no backslash, and no set that is not closed, which would stand for itself.
#pragma once

#include <string_view>

namespace plumbline::contract {

inline constexpr std::string_view kGroupPatterns =
    "a pattern of letters, digits, '.', '_', '*', '?' and sets of them, [0-3x] or [!0-3x]";

bool IsGroupPattern(std::string_view pattern);

}  // namespace plumbline::contract
