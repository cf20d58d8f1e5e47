// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/group_pattern.h"

namespace plumbline::contract {
namespace {

// What names of parameters have.
bool IsOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
}

// The bytes of the set that `text` begins with, brackets included; 0 where that is none.
size_t SetBytes(std::string_view text) {
  size_t at = text.starts_with("[!") ? 2 : 1;
  const size_t first = at;
  while (at < text.size() && IsOfName(text[at])) {
    const bool is_range = at + 2 < text.size() && text[at + 1] == '-';
    if (is_range && (!IsOfName(text[at + 2]) || text[at] > text[at + 2])) return 0;
    at += is_range ? 3 : 1;
  }
  return at > first && at < text.size() && text[at] == ']' ? at + 1 : 0;
}

}  // namespace

bool IsGroupPattern(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    const size_t bytes = c == '[' ? SetBytes(pattern.substr(at)) : IsOfName(c) || c == '*' || c == '?' ? 1 : 0;
    if (bytes == 0) return false;
    at += bytes;
  }
  return !pattern.empty();
}

}  // namespace plumbline::contract
