// SPDX-License-Identifier: Apache-2.0
// Writing to standard output so that a failure is known where it happens: later nobody could say why.
#pragma once

#include <string>

namespace plumbline::cli {

// All of it, at once. 0, or the errno that says why not.
int WriteOut(const std::string& text);

// The same; throws std::system_error.
void Print(const std::string& text);

}  // namespace plumbline::cli
