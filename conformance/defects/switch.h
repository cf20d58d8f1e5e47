// SPDX-License-Identifier: Apache-2.0
//
// Switches of the planted defects. apply_edits.py puts `Enabled<"G1">()` into *copies* of engine sources; the harness
// turns a defect on by id before the engine starts. Product code never includes this and the product never links it.
// Not thread-safe by intent: switches are set before any rank thread exists and only read afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace plumbline::defects {

// A string literal as a template argument.
template <std::size_t kSize>
struct Id {
  consteval Id(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text); }  // NOLINT: implicit by design
  char text[kSize];
};

// One plain bool per defect: a switched site costs one load and one branch, whatever loop it stands in.
template <Id kId>
inline bool switched_on = false;

template <Id kId>
bool Enabled() {
  return switched_on<kId>;
}

struct Defect {
  std::string_view id;          // "G1"
  std::string_view title;       // what is wrong, one line
  std::string_view expect;      // "exact, ledger: step 0": the checks one of which must fail, then what else is known
  std::string_view family;      // of the cases that it is tried on
  std::string_view hypothesis;  // that the diagnosis is to find (conformance/diagnosis/hypothesis.h); empty: none
  bool* on;
};

// All defects in order of id. Generated from the edit files (defect_table in bazel/engine_library.bzl).
std::span<const Defect> Defects();

std::vector<std::string_view> Ids();

// Turns a defect on. Throws std::invalid_argument, listing the known ids, if there is none of that id.
void Activate(std::string_view id);

void DeactivateAll();

}  // namespace plumbline::defects
