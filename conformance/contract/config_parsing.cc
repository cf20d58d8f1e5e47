// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/config_parsing.h"

#include <algorithm>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::contract {

void CheckKeys(const JsonValue& object, std::span<const std::string_view> built,
               std::span<const std::string_view> unbuilt) {
  object.AllowOnly(built, unbuilt);
  for (const std::string& key : object.Keys()) {
    if (std::find(unbuilt.begin(), unbuilt.end(), key) == unbuilt.end()) continue;
    Fail(ErrorCode::kUnsupported, object.Path() + ": key \"" + key + "\" is known but not built yet; leave it out");
  }
}

double NumberIn(const JsonValue& value, double min, double max, std::string_view allowed) {
  const double number = value.Number();
  if (!(number >= min && number < max)) value.Reject(allowed);
  return number;
}

double NotNegative(const JsonValue& value) { return NumberIn(value, 0, 1e30, "a number of at least 0 and below 1e30"); }

double Positive(const JsonValue& value) {
  constexpr double kSmallest = 5e-324;
  return NumberIn(value, kSmallest, 1e30, "a number of more than 0 and below 1e30");
}

double Share(const JsonValue& value) { return NumberIn(value, 0, 1, "a number in [0, 1)"); }

}  // namespace plumbline::contract
