// SPDX-License-Identifier: Apache-2.0
// The layouts of a list of cases: a covering array over the axes declared in the .cc file (data degree, ZeRO stage,
// accumulation, bucket, overlap, storage) times the problems. A new axis is one declaration there, for every family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/problem.h"

namespace plumbline::conformance {

// What of a problem the layouts are measured by.
struct LayoutScale {
  int64_t bucket_elems = 0;      // the largest parameter of a layer: buckets are one below, at and one above it
  int64_t projection_elems = 0;  // the tight stage 3 keeps smaller parameters gathered
  int64_t layer_elems = 0;       // all parameters of a layer; limits of gathers are multiples of it
  int64_t trained_elems = 0;     // all that are not frozen: one bucket, exactly full
  int64_t embedding_elems = 0;   // the tied weight, which stays over a step where the limit allows it
  bool fits_bf16 = true;
  bool fits_fp16 = true;
  bool has_bf16 = true;  // false: the tier tries the problem in other types
  bool has_fp16 = true;
};

// Whether the bounds leave values that the type holds (docs/exact-mode.md, "Parameters"). Real families always fit.
bool Fits(const Problem& problem, contract::DType storage);

// Sets the type, and of fp16 the loss scale that goes with the problem.
void StoreIn(contract::DType storage, const Problem& problem, contract::RunConfig& config);

// The plain layout in this storage type, with its loss scale; nothing where it does not fit.
std::optional<contract::RunConfig> PlainIn(const Problem& problem, contract::DType storage);

// `largest` and `projection` name parameters of layer 0.
LayoutScale ScaleOf(const Problem& problem, const std::string& largest, const std::string& projection);

// All valid tuples of `strength` axis values occur, after the layouts that are `given` by the values of all axes
// ("problem" is the first of them). Ids are FAMILY/PROBLEM/LAYOUT. What cannot be combined is declared with its reason
// in the .cc file, beside the axes. Where that takes fewer than `at_least` layouts, those follow that have the most
// tuples of one value more.
CaseList CoverLayouts(std::vector<Problem> problems, const std::vector<LayoutScale>& scales, int strength,
                      const std::vector<AxisValues>& given, size_t at_least = 0);

// Appends the other list's problems and cases.
void Append(CaseList& list, CaseList other);

}  // namespace plumbline::conformance
