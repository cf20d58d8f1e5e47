// SPDX-License-Identifier: Apache-2.0
// Implementation of parts.h.
#include "conformance/contract/fuzz/parts.h"

namespace plumbline::contract::fuzz {

std::vector<std::string_view> Parts(std::string_view text, size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const size_t at = text.find(kBetweenParts);
    parts.push_back(text.substr(0, at));
    text = at == std::string_view::npos ? std::string_view{} : text.substr(at + kBetweenParts.size());
  }
  parts.push_back(text);
  return parts;
}

}  // namespace plumbline::contract::fuzz
