// SPDX-License-Identifier: Apache-2.0
// Fuzz target: case.json.
#include "conformance/contract/case_file.h"
#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const auto value = ParseOrRefuse([&] { return ParseCase(Text(data, size), "input"); });
  if (!value.has_value()) return false;
  Demand(DemandRoundTrip(ParseCase, *value) == *value, "parse(ToJson(x)) == x");
  return true;
}

}  // namespace plumbline::contract::fuzz
