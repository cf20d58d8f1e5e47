// SPDX-License-Identifier: Apache-2.0
// Fuzz target: JSON by itself, and what we write of text and numbers. Any text can be quoted and is read back, as it
// was where it is valid UTF-8; any finite number is read back with the same bits.
#include <bit>
#include <cmath>
#include <cstring>

#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract::fuzz {
namespace {

void DemandQuoted(std::string_view text) {
  const std::string quoted = JsonQuote(text);
  const auto value = ParseOrRefuse([&] { return JsonValue::Parse(quoted, "quoted").String(); });
  Demand(value.has_value(), "what JsonQuote writes parses: " + quoted);
  Demand(JsonQuote(*value) == quoted, "JsonQuote is canonical: " + quoted);
}

void DemandNumbers(std::string_view bytes) {
  for (; bytes.size() >= sizeof(double); bytes.remove_prefix(sizeof(double))) {
    double number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    if (!std::isfinite(number)) continue;
    const std::string json = JsonNumber(number);
    const auto again = ParseOrRefuse([&] { return JsonValue::Parse(json, "number").Number(); });
    Demand(again == number && (number == 0 || std::signbit(*again) == std::signbit(number)), "reads back: " + json);
  }
}

// Every value, by the way that asks the most of it.
void Walk(const JsonValue& value) {
  Demand(value.Shown().size() < 200, "what a message shows is short");
  if (value.IsObject()) {
    for (const std::string& key : value.Keys()) Walk(value.At(key));
    ParseOrRefuse([&] { return value.AllowOnly({"model", "config", "record"}), 0; });
    return;
  }
  if (value.IsString()) {
    DemandQuoted(value.String());
    ParseOrRefuse([&] { return value.Name(8); });
    ParseOrRefuse([&] { return value.OneOf({"forward", "backward"}); });
    return;
  }
  if (value.IsNumber()) {
    ParseOrRefuse([&] { return value.Int(); });
    ParseOrRefuse([&] { return value.Count(-5, int64_t{1} << 60); });
    ParseOrRefuse([&] { return value.UInt64(); });
    const auto number = ParseOrRefuse([&] { return value.Number(); });
    Demand(!number || std::isfinite(*number), "a number is finite");
    return;
  }
  const auto length = ParseOrRefuse([&] { return value.Size(); });
  for (size_t i = 0; i < length.value_or(0); ++i) Walk(value[i]);
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const std::string_view text = Text(data, size);
  DemandQuoted(text);
  DemandNumbers(text);
  const auto with = ParseOrRefuse([&] { return JsonValue::Parse(text, "input", JsonValue::Comments::kAllowed); });
  const auto without = ParseOrRefuse([&] { return JsonValue::Parse(text, "input"); });
  Demand(with.has_value() || !without.has_value(), "what parses without comments parses where they are allowed");
  if (with) Walk(*with);
  return without.has_value();
}

}  // namespace plumbline::contract::fuzz
