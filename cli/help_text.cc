// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.h"

#include <sstream>

namespace plumbline::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kIndent = 28;

// Both columns; the right one begins below the left where that is too wide.
std::string InColumns(std::string left, const std::string& right) {
  const bool beside = left.size() + 2 <= kIndent;
  left += beside ? std::string(kIndent - left.size(), ' ') : "\n" + std::string(kIndent, ' ');
  return left + Wrapped(right, kIndent, kIndent, kWidth) + "\n";
}

}  // namespace

std::string Wrapped(const std::string& text, size_t first, size_t indent, size_t width) {
  std::istringstream words(text);
  std::string wrapped, word;
  size_t column = first;
  bool line_is_empty = true;
  while (words >> word) {
    if (!line_is_empty && column + 1 + word.size() > width) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
      line_is_empty = true;
    }
    wrapped += (line_is_empty ? "" : " ") + word;
    column += word.size() + (line_is_empty ? 0 : 1);
    line_is_empty = false;
  }
  return wrapped;
}

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  std::string left = "  " + option->get_name(is_positional, /*all_options=*/true);
  if (option->get_expected_max() > 0 && !option->get_type_name().empty()) left += " " + option->get_type_name();
  return InColumns(left, option->get_description());
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return InColumns("  " + command->get_name(), command->get_description());
}

}  // namespace plumbline::cli
