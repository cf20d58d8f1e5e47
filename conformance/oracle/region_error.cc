// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/region_error.h"

#include <algorithm>
#include <cmath>

namespace plumbline::conformance {

RegionTruth MeasureTruth(const GradientRegion& region, std::span<const double> truth, double whole_norm) {
  RegionTruth measured;
  ForEachElement(region, [&](size_t i) { measured.largest = std::max(measured.largest, std::abs(truth[i])); });
  // In units of the largest element, so that no square underflows.
  double squares = 0;
  double fourths = 0;
  ForEachElement(region, [&](size_t i) {
    const double square = measured.largest > 0 ? (truth[i] / measured.largest) * (truth[i] / measured.largest) : 0;
    squares += square;
    fourths += square * square;
  });
  const double norm = measured.largest * std::sqrt(squares);
  measured.null = norm <= kNullShare * whole_norm;
  measured.scale = measured.null ? whole_norm : norm;
  if (fourths > 0) measured.participation = squares * squares / fourths;
  return measured;
}

RegionError MeasureError(const GradientRegion& region, const RegionTruth& measured, std::span<const double> truth,
                         std::span<const double> engine) {
  RegionError error;
  if (!(measured.scale > 0)) return error;  // the whole gradient is zero
  double squares = 0;
  double product = 0;
  double largest = 0;
  ForEachElement(region, [&](size_t i) {
    const double difference = (engine[i] - truth[i]) / measured.scale;
    squares += difference * difference;
    product += difference * (truth[i] / measured.scale);
    largest = std::max(largest, std::abs(difference));
  });
  error.norm = std::sqrt(squares);
  error.slope = measured.null ? 0 : product;
  error.tail = largest * std::sqrt(static_cast<double>(region.numel()));
  return error;
}

RegionTruth WholeTruth(std::span<const RegionTruth> regions) {
  RegionTruth whole;
  for (const RegionTruth& region : regions) whole.scale = std::hypot(whole.scale, region.null ? 0 : region.scale);
  double fourths = 0;
  for (const RegionTruth& region : regions) {
    whole.largest = std::max(whole.largest, region.largest);
    if (region.null || !(whole.scale > 0)) continue;
    fourths += std::pow(region.scale / whole.scale, 4) / region.participation;
  }
  whole.null = !(whole.scale > 0);
  if (fourths > 0) whole.participation = 1 / fourths;
  return whole;
}

RegionError WholeError(std::span<const GradientRegion> regions, std::span<const RegionTruth> truth,
                       std::span<const RegionError> errors) {
  const double scale = WholeTruth(truth).scale;
  RegionError whole;
  double numel = 0;
  for (const GradientRegion& region : regions) numel += static_cast<double>(region.numel());
  for (size_t i = 0; i < regions.size() && scale > 0; ++i) {
    const double share = truth[i].scale / scale;
    whole.norm = std::hypot(whole.norm, errors[i].norm * share);
    if (!truth[i].null) whole.slope += errors[i].slope * share * share;
    const double elements_here = static_cast<double>(regions[i].numel());
    whole.tail = std::max(whole.tail, errors[i].tail * share * std::sqrt(numel / elements_here));
  }
  return whole;
}

double RootMeanSquare(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace plumbline::conformance
