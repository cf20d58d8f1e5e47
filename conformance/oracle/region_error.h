// SPDX-License-Identifier: Apache-2.0
// How far one engine's gradient is from the truth in one region and step: norm, slope and tail of the error, made free
// of units by the truth. Measures; it does not judge. Values must be finite.
#pragma once

#include <span>
#include <vector>

#include "conformance/oracle/gradient_region.h"

namespace plumbline::conformance {

// A region of the truth. Where its gradient is rounding noise of the truth itself (below kNullShare of the whole
// gradient, or zero), the region is null in this step: its scale is the whole gradient's norm, and it has no slope.
inline constexpr double kNullShare = 0x1p-40;

struct RegionTruth {
  bool null = false;
  double scale = 0;          // norm of the region, or of the whole gradient where it is null
  double largest = 0;        // largest absolute value of an element
  double participation = 1;  // (sum t^2)^2 / sum t^4: how many elements carry the norm, between 1 and numel
};

struct RegionError {
  double norm = 0;   // |e| / scale
  double slope = 0;  // <e, t> / <t, t>: minus a half where everything is halved; 0 where the region is null
  double tail = 0;   // largest |e_i| / (scale / sqrt(numel))
};

RegionTruth MeasureTruth(const GradientRegion& region, std::span<const double> truth, double whole_norm);
RegionError MeasureError(const GradientRegion& region, const RegionTruth& measured, std::span<const double> truth,
                         std::span<const double> engine);

// All regions of a step as one.
RegionTruth WholeTruth(std::span<const RegionTruth> regions);
RegionError WholeError(std::span<const GradientRegion> regions, std::span<const RegionTruth> truth,
                       std::span<const RegionError> errors);

// Root of the mean square; 0 of none.
double RootMeanSquare(std::span<const double> values);

}  // namespace plumbline::conformance
