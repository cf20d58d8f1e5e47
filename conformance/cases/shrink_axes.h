// SPDX-License-Identifier: Apache-2.0
// The axes along which a failing case is made smaller, each declared once: its name, how large a case is on it, which
// smaller values there are, and what they make of a case. A new axis is one declaration in the .cc file. Pure; how they
// are searched is in shrink.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

struct ShrinkAxis {
  std::string_view name;  // as reports call it
  // 0 is the least there can be: features are 0 or 1.
  int64_t (*size)(const contract::Case&);
  // Values below size(), smallest first. Not all of them need give a valid case.
  std::vector<int64_t> (*smaller)(const contract::Case&);
  // May make other axes smaller where it must (a layer less takes its frozen parameters along), and raises none.
  void (*set)(contract::Case&, int64_t value);
  std::string_view off = {};  // of a feature: how values 0 and 1 are shown; empty: numbers
  std::string_view on = {};
};

// In the order in which they are tried: how it is distributed and stored, then what is trained.
const std::vector<ShrinkAxis>& ShrinkAxes();

// The case with this value, or nothing if that is not a valid case.
std::optional<contract::Case> WithValue(const contract::Case& spec, const ShrinkAxis& axis, int64_t value);

// Values of valid cases, smallest first.
std::vector<int64_t> SmallerValues(const contract::Case& spec, const ShrinkAxis& axis);

// The case with the first of these, or nothing if there is none.
std::optional<contract::Case> AtLeast(const contract::Case& spec, const ShrinkAxis& axis);

// Whether `a` is at most `b` on each axis and less on one.
bool IsSmaller(const contract::Case& a, const contract::Case& b);

// "data 8 -> 2, layers 2 -> 1" (with arrows); empty where nothing differs.
std::string Reductions(const contract::Case& from, const contract::Case& to);

}  // namespace plumbline::conformance
