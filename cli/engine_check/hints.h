// SPDX-License-Identifier: Apache-2.0
// What is expected of an engine in each step of `plumbline engine check`, and where it is written.
#pragma once

#include <string_view>

namespace plumbline::cli {

// Empty for a name that no step has.
std::string_view HintOf(std::string_view step);

}  // namespace plumbline::cli
