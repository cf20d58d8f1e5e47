// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what an engine prints for `describe`.
#include "conformance/contract/engine_protocol.h"
#include "conformance/contract/fuzz/only_errors.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const auto value = ParseOrRefuse([&] { return ParseEngineDescription(Text(data, size), "input"); });
  if (!value.has_value()) return false;
  DemandRoundTrip(ParseEngineDescription, *value);
  return true;
}

}  // namespace plumbline::contract::fuzz
