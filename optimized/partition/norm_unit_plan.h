// SPDX-License-Identifier: Apache-2.0
// The units whose norms clipping by units takes: where the sums of each parameter's units lie, and which unit each
// element of a slice belongs to. Pure integer arithmetic. (Units that read weights are another thing: unit_plan.h.)
// Source: docs/semantics.md, "Clipping"; docs/formats.md, "Buckets and the ledger".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::optimized {

// How the elements of a parameter, row-major, fall into units: in runs of run_elems, which go round all units. A vector
// is one run of one unit, rows are a run each, columns are runs of one element.
struct UnitForm {
  int64_t numel = 0;
  int64_t num_units = 0;  // 0: the parameter is not clipped
  int64_t run_elems = 0;
};

// Of one parameter: unit u is number first_unit + u of all.
struct UnitPlace {
  int64_t first_unit = 0;
  int64_t num_units = 0;
  int64_t run_elems = 0;
};

struct NormUnitPlan {
  std::vector<UnitPlace> places;  // by canonical index
  int64_t num_units = 0;          // of all parameters: U
};

// forms by canonical index. InvalidArgument if a parameter is not a whole number of rounds over its units.
NormUnitPlan PlanNormUnits(std::span<const UnitForm> forms);

// Consecutive elements [begin, end) of a parameter: all of unit first_unit, or, where units ascend, one element of each
// of first_unit, first_unit + 1, ...
struct UnitRun {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first_unit = 0;  // of all
  bool ascends = false;

  int64_t elems() const { return end - begin; }
  friend bool operator==(const UnitRun&, const UnitRun&) = default;
};

// Elements [begin, end) in as few runs as there are. The place has units.
std::vector<UnitRun> RunsOf(const UnitPlace& place, int64_t begin, int64_t end);

}  // namespace plumbline::optimized
