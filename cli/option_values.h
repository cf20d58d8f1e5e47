// SPDX-License-Identifier: Apache-2.0
// Values of options, read by ourselves: CLI11 wraps -1 and 2^64 into range, lets NaN pass and words its errors for
// programmers. A value that is refused is InvalidArgument, one line: option, value, what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/contract/error.h"

namespace plumbline::cli {

// "--jobs is "two"; allowed: N from 1 to 256". The option's type name says what is allowed.
[[noreturn]] void RefuseValue(std::string_view option, const std::string& value, const std::string& allowed);

// An integer or a number, as one option takes it, and the words for it: "N from 1 to 256".
struct IntegerRange {
  uint64_t min = 0;
  uint64_t max = 0;

  std::string text() const;
  uint64_t Parse(std::string_view option, const std::string& value) const;
};

struct SecondsRange {
  double min = 0;
  double max = 0;

  std::string text() const;
  double Parse(std::string_view option, const std::string& value) const;
};

// `what` of an error about the file that an option names: "--text notes.txt: cannot be read: ...". `named` is how the
// message calls the file.
std::string OfOption(std::string_view option, const std::string& value, std::string_view named, std::string_view what);

// Reads it; an error says which option named it.
template <typename Read>
auto ReadOption(std::string_view option, const std::string& value, Read read) {
  try {
    return read();
  } catch (const contract::Error& error) {
    contract::Fail(error.code(), OfOption(option, value, value, error.what()));
  }
}

}  // namespace plumbline::cli
