// SPDX-License-Identifier: Apache-2.0
// See norm_unit_plan.h.
#include "optimized/partition/norm_unit_plan.h"

#include <algorithm>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {

NormUnitPlan PlanNormUnits(std::span<const UnitForm> forms) {
  NormUnitPlan plan;
  for (const UnitForm& form : forms) {
    const bool has_units = form.num_units > 0 && form.run_elems > 0;
    if (form.num_units != 0 && (!has_units || form.numel % (form.run_elems * form.num_units) != 0)) {
      contract::Fail(contract::ErrorCode::kInvalidArgument, "a parameter of " + std::to_string(form.numel) +
                                                                " elements has no " + std::to_string(form.num_units) +
                                                                " units in runs of " + std::to_string(form.run_elems));
    }
    // One unit is one run: elements one by one would be as right, and slow.
    plan.places.push_back({plan.num_units, form.num_units, form.num_units == 1 ? form.numel : form.run_elems});
    plan.num_units += form.num_units;
  }
  return plan;
}

std::vector<UnitRun> RunsOf(const UnitPlace& place, int64_t begin, int64_t end) {
  std::vector<UnitRun> runs;
  const bool ascends = place.run_elems == 1 && place.num_units > 1;
  const int64_t longest = ascends ? place.num_units : place.run_elems;
  while (begin < end) {
    const int64_t run_end = std::min(end, begin - begin % longest + longest);
    runs.push_back({begin, run_end, place.first_unit + begin / place.run_elems % place.num_units, ascends});
    begin = run_end;
  }
  return runs;
}

}  // namespace plumbline::optimized
