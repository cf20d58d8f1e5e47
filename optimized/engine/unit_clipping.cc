// SPDX-License-Identifier: Apache-2.0
// See unit_clipping.h. Slices begin at multiples of 32 elements of their tensor (bucket_plan.h), so that no chunk of a
// sum lies on two ranks.
#include "optimized/engine/unit_clipping.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"
#include "kernels/scale/scale.h"

namespace plumbline::optimized {
namespace {

// Of one unit: equation 3, with norms over all of it.
double UnitFactor(const contract::AdaptiveClipping& options, double gradient_norm, double master_norm) {
  const double limit = options.ratio * std::max(master_norm, options.eps);
  return gradient_norm > limit ? limit / gradient_norm : 1;
}

}  // namespace

UnitClipping::UnitClipping(const contract::AdaptiveClipping& options, std::span<const UnitForm> forms,
                           const ShardPlan& shard, const SumReduction& reduction)
    : options_(options),
      plan_(PlanNormUnits(forms)),
      shard_(shard),
      sums_("norms of units", 2 * plan_.num_units, reduction),
      factors_(static_cast<size_t>(plan_.num_units)) {}

void UnitClipping::Compute(const ValuesOf& gradient, const ValuesOf& master) {
  sums_.Clear();
  for (const ShardSlice& slice : shard_.slices) {
    if (plan_.places[slice.parameter].num_units == 0 || !sums_.Counts(slice)) continue;
    AddSquares(slice, gradient(slice), 0);
    AddSquares(slice, master(slice), plan_.num_units);
  }
  sums_.Reduce();
  for (int64_t unit = 0; unit < plan_.num_units; ++unit) {
    factors_[unit] = static_cast<float>(
        UnitFactor(options_, std::sqrt(sums_[unit].Total()), std::sqrt(sums_[plan_.num_units + unit].Total())));
  }
}

void UnitClipping::Skip() {
  sums_.Clear();
  sums_.Reduce();
}

void UnitClipping::AddSquares(const ShardSlice& slice, std::span<const float> values, int64_t first_sum) {
  const UnitPlace& place = plan_.places[slice.parameter];
  const std::span<kernels::SquareSum> sums = sums_.Range(first_sum + place.first_unit, place.num_units);
  const auto carry = [&] {
    for (kernels::SquareSum& sum : sums) sum.Carry();
  };
  int64_t num_ascending = 0;
  for (const UnitRun& run : RunsOf(place, slice.begin, slice.end)) {
    const std::span<const float> part = values.subspan(run.begin - slice.begin, run.elems());
    const int64_t unit = run.first_unit - place.first_unit;
    if (!run.ascends) {
      kernels::AddSquaresOfPart(run.begin, part, sums[unit]);
      continue;
    }
    kernels::AddSquaresToEach(part, sums.subspan(unit, run.elems()));
    if (++num_ascending % kernels::kUncarriedSquares == 0) carry();
  }
  if (num_ascending > 0) carry();
}

void UnitClipping::Clip(int64_t parameter, int64_t begin, std::span<const float> gradient,
                        std::span<float> clipped) const {
  const UnitPlace& place = plan_.places[parameter];
  contract::Check(place.num_units > 0, "only a parameter with units is clipped by them");
  for (const UnitRun& run : RunsOf(place, begin, begin + static_cast<int64_t>(gradient.size()))) {
    const std::span<const float> part = gradient.subspan(run.begin - begin, run.elems());
    const std::span<float> result = clipped.subspan(run.begin - begin, run.elems());
    if (run.ascends) {
      kernels::ScaleEach(std::span(factors_).subspan(run.first_unit, run.elems()), part, result);
    } else {
      kernels::Scale<float>(factors_[run.first_unit], part, result);
    }
  }
}

}  // namespace plumbline::optimized
