// SPDX-License-Identifier: Apache-2.0
// Text in parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline::contract {

// What is between the separators: one part more than there are separators, each of which may be empty.
std::vector<std::string> Split(std::string_view text, char separator);

}  // namespace plumbline::contract
