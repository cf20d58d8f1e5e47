// SPDX-License-Identifier: Apache-2.0
// Makes foreign text fit for one line of a report: what an engine prints may hold anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumbline::conformance {

// Valid UTF-8 without control characters, at most max_bytes long ("..." where it was cut, never inside a character).
// Runs of white space and control characters become one space, at the ends none; each byte that is not UTF-8 becomes
// '?'.
std::string OneLine(std::string_view text, size_t max_bytes = 400);

// The last line that is not blank, as OneLine gives it; empty if there is none.
std::string LastLine(std::string_view text, size_t max_bytes = 400);

}  // namespace plumbline::conformance
