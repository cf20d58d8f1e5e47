// SPDX-License-Identifier: Apache-2.0
// What every fuzz target of the contract demands: foreign bytes either parse or are refused with InvalidArgument or
// Unsupported. Any other exception, and any broken property, ends the process, which is what a fuzzer looks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline::contract::fuzz {

// What a target defines: parses the input, demands its properties, and says whether the input was accepted.
bool Accepts(const uint8_t* data, size_t size);

// Prints the reason and aborts unless `ok`. (Not contract::Check: its exception could be taken for a parser's.)
void Demand(bool ok, std::string_view property);

// Called in a handler: aborts unless the exception in flight is a contract::Error of an allowed code.
void DemandAllowedError();

inline std::string_view Text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// The value of parse(), or nothing where it refused.
template <typename Parse>
auto ParseOrRefuse(const Parse& parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (...) {
    DemandAllowedError();
    return std::nullopt;
  }
}

// For formats that we also write: what ToJson wrote parses, and is written again as the same text.
template <typename Parse, typename Value>
auto DemandRoundTrip(const Parse& parse, const Value& value) -> Value {
  const std::string json = ToJson(value);
  const auto again = ParseOrRefuse([&] { return parse(json, "written by us"); });
  Demand(again.has_value(), "what ToJson writes parses: " + json);
  Demand(ToJson(*again) == json, "ToJson is canonical: " + json);
  return *again;
}

}  // namespace plumbline::contract::fuzz
