// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/number_text.h"

#include <cmath>
#include <cstdio>

#include "conformance/contract/strict_json.h"

namespace plumbline::conformance {
namespace {

std::string ClassName(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Inf" : "-Inf";
}

}  // namespace

std::string ShortText(double value, int num_digits) {
  if (!std::isfinite(value)) return ClassName(value);
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", num_digits, value);
  return text;
}

std::string ExactText(double value) { return std::isfinite(value) ? contract::JsonNumber(value) : ClassName(value); }

std::string TraceText(double value) { return std::isfinite(value) ? ExactText(value) : "not finite"; }

}  // namespace plumbline::conformance
