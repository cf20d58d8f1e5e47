// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/place_in_text.h"

#include <cctype>
#include <charconv>

#include "conformance/diagnosis/region.h"

namespace plumbline::conformance {
namespace {

// The number after `word` in the text, or -1 where there is none that could be a step or a rank.
int64_t NumberAfter(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return -1;
  int64_t number = -1;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number < 0 ? -1 : number;
}

}  // namespace

reports::DivergenceRecord PlaceInText(const std::string& text, const contract::ModelSpec& model) {
  reports::DivergenceRecord record;
  record.step = NumberAfter(text, "step ");
  const int64_t rank = NumberAfter(text, "rank ");
  if (rank >= 0) record.ranks = {rank};
  for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
    const size_t at = text.find(parameter.name);
    const bool is_longer = at != std::string::npos && at > 0 && (text[at - 1] == '.' || std::isalnum(text[at - 1]));
    if (at == std::string::npos || is_longer || parameter.name.size() < record.tensor.size()) continue;
    record.tensor = parameter.name;
    record.layer = LayerOf(parameter.name);
  }
  record.undiagnosed = "what was found are no values of a tensor";
  return record;
}

}  // namespace plumbline::conformance
