// SPDX-License-Identifier: Apache-2.0
// See plan_json.h.
#include "cli/plan_json.h"

#include <fmt/format.h>

#include "conformance/contract/strict_json.h"

namespace plumbline::cli {
namespace {

using contract::JsonQuote;

// "[a, b]" of what `show` makes of each element.
template <typename T, typename Show>
std::string Array(const std::vector<T>& elements, const Show& show) {
  std::string text;
  for (const T& element : elements) text += (text.empty() ? "" : ", ") + show(element);
  return "[" + text + "]";
}

std::string Strings(const std::vector<std::string>& words) {
  return Array(words, [](const std::string& word) { return JsonQuote(word); });
}

std::string FamilyJson(const conformance::FamilyCoverage& family) {
  const std::string axes = Array(family.axes, [](const conformance::Axis& axis) {
    return fmt::format("{{\"name\": {}, \"values\": {}}}", JsonQuote(axis.name), Strings(axis.values));
  });
  const std::string tuples = Array(family.tuples, [](const conformance::Coverage& tuple) {
    return fmt::format("{{\"strength\": {}, \"covered\": {}, \"valid\": {}}}", tuple.strength, tuple.covered,
                       tuple.valid);
  });
  const std::string excluded = Array(family.excluded, [](const conformance::Exclusion& exclusion) {
    return fmt::format("{{\"combination\": {}, \"reason\": {}}}", JsonQuote(exclusion.tuple),
                       JsonQuote(exclusion.reason));
  });
  return fmt::format("{{\"family\": {}, \"cases\": {}, \"axes\": {}, \"tuples\": {}, \"excluded\": {}}}",
                     JsonQuote(family.family), family.cases, axes, tuples, excluded);
}

}  // namespace

std::string ListJson(const std::vector<std::string>& ids) { return "{\"cases\": " + Strings(ids) + "}\n"; }

std::string CoverageJson(std::string_view tier, const std::vector<conformance::FamilyCoverage>& families) {
  return fmt::format("{{\"tier\": {}, \"families\": {}}}\n", JsonQuote(tier), Array(families, FamilyJson));
}

}  // namespace plumbline::cli
