// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/split.h"

namespace plumbline::contract {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace plumbline::contract
