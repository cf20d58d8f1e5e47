// SPDX-License-Identifier: Apache-2.0
// Words of a command line as a shell takes them back.
#pragma once

#include <string>

namespace plumbline::cli {

std::string Quoted(const std::string& word);

}  // namespace plumbline::cli
