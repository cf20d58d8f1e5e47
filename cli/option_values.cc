// SPDX-License-Identifier: Apache-2.0
#include "cli/option_values.h"

#include <fmt/format.h>

#include <charconv>

namespace plumbline::cli {
namespace {

// The whole text, or false.
template <typename Number>
bool Read(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

void RefuseValue(std::string_view option, const std::string& value, const std::string& allowed) {
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 fmt::format("{} is \"{}\"; allowed: {}", option, value, allowed));
}

std::string OfOption(std::string_view option, const std::string& value, std::string_view named, std::string_view what) {
  if (what.starts_with(named)) what.remove_prefix(named.size());
  if (what.starts_with(": ")) what.remove_prefix(2);
  return fmt::format("{} {}{}{}", option, value, what.starts_with(":") ? "" : ": ", what);
}

std::string IntegerRange::text() const { return fmt::format("N from {} to {}", min, max); }

uint64_t IntegerRange::Parse(std::string_view option, const std::string& value) const {
  uint64_t number = 0;
  if (!Read(value, number) || number < min || number > max) RefuseValue(option, value, text());
  return number;
}

std::string SecondsRange::text() const { return fmt::format("SECONDS from {} to {}", min, max); }

// Positive form: NaN is within no range.
double SecondsRange::Parse(std::string_view option, const std::string& value) const {
  double number = 0;
  if (!(Read(value, number) && number >= min && number <= max)) RefuseValue(option, value, text());
  return number;
}

}  // namespace plumbline::cli
