// SPDX-License-Identifier: Apache-2.0
// Fuzz target: certificate.json.
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/trace.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const auto value = ParseOrRefuse([&] { return ParseCertificate(Text(data, size), "input"); });
  if (!value.has_value()) return false;
  DemandRoundTrip(ParseCertificate, *value);
  return true;
}

}  // namespace plumbline::contract::fuzz
