// SPDX-License-Identifier: Apache-2.0
// The help of a command for a terminal of 80 columns: a terminal breaks longer lines in the middle of a word.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace plumbline::cli {

// Lines of at most `width` columns, broken at spaces, all but the first indented by `indent`; `first` columns of the
// first line are taken. A word that is longer has a line for itself.
std::string Wrapped(const std::string& text, size_t first, size_t indent, size_t width);

class HelpText : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace plumbline::cli
