// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line, in one line that names the option and says what is allowed. CLI11 takes the next
// option for the value of one that has none ("--filter= --list"), and words its errors for programmers.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>

namespace plumbline::cli {

// Before parsing: an option of `command` without its value, or with an empty one. `words` come after the command's
// name.
std::optional<std::string> MissingValue(const CLI::App& command, std::span<const std::string> words);

// What CLI11 has refused, in our words.
std::string Explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace plumbline::cli
