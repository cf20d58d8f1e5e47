// SPDX-License-Identifier: Apache-2.0
// Fuzz target: trace.jsonl. Steps are consecutive, and an unfinished last line changes nothing.
#include "conformance/contract/fuzz/only_errors.h"
#include "conformance/contract/trace.h"

namespace plumbline::contract::fuzz {

bool Accepts(const uint8_t* data, size_t size) {
  const std::string_view text = Text(data, size);
  const auto trace = ParseOrRefuse([&] { return ParseTrace(text, "input"); });
  if (!trace.has_value()) return false;
  for (size_t i = 0; i < trace->steps.size(); ++i) {
    Demand(trace->steps[i].step == static_cast<int64_t>(i), "steps are consecutive from 0");
  }
  if (text.empty() || text.back() != '\n') return true;
  const std::string torn = std::string(text) + "{\"record\": \"st";
  const auto again = ParseOrRefuse([&] { return ParseTrace(torn, "input and a torn line"); });
  Demand(again.has_value(), "a last line without newline is ignored");
  Demand(again->steps.size() == trace->steps.size() && again->complete == trace->complete,
         "a last line without newline changes nothing");
  return true;
}

}  // namespace plumbline::contract::fuzz
