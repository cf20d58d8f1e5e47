// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what an engine prints, made fit for a line of a report, and places in messages. A line is valid UTF-8
// without control characters, as JSON's own reader sees it.
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/strict_json.h"
#include "conformance/engines/one_line.h"
#include "conformance/runner/place_in_text.h"

namespace plumbline::contract::fuzz {
namespace {

void DemandLine(const std::string& line, size_t max_bytes) {
  Demand(line.size() <= max_bytes, "a line is as short as was asked: " + line);
  Demand(conformance::OneLine(line, max_bytes) == line, "a line is one line: " + line);
  for (const char c : line) Demand(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F, "no control characters");
  const auto text = ParseOrRefuse([&] { return JsonValue::Parse(JsonQuote(line), "line").String(); });
  Demand(text == line, "valid UTF-8: " + line);
}

}  // namespace

bool Accepts(const uint8_t* data, size_t size) {
  const std::string_view text = Text(data, size);
  for (const size_t max_bytes : {size_t{0}, size_t{2}, size_t{7}, size_t{400}}) {
    DemandLine(conformance::OneLine(text, max_bytes), max_bytes);
    DemandLine(conformance::LastLine(text, max_bytes), max_bytes);
  }
  Gpt2Spec model;
  model.layers = model.width = model.heads = model.positions = model.hidden = model.vocab = 2;
  const reports::DivergenceRecord place = conformance::PlaceInText(std::string(text), model);
  Demand(place.step >= -1 && place.layer >= -1, "a place is a place, or is not known");
  for (const int64_t rank : place.ranks) Demand(rank >= 0, "a rank is a rank");
  return !conformance::OneLine(text).empty();
}

}  // namespace plumbline::contract::fuzz
