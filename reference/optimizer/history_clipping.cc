// SPDX-License-Identifier: Apache-2.0
// Implements history_clipping.h.
#include "reference/optimizer/history_clipping.h"

#include <algorithm>
#include <cmath>

namespace plumbline::reference {
namespace {

bool WarmsUp(const contract::AdaptiveClipping& clipping, const contract::NormHistory& before) {
  return before.count < clipping.warmup_steps;
}

double Threshold(const contract::AdaptiveClipping& clipping, const contract::NormHistory& before) {
  return before.mean + clipping.deviations * std::sqrt(before.variance);
}

contract::NormHistory AfterWarmingUp(const contract::NormHistory& before, double norm) {
  const auto n = static_cast<double>(before.count);
  const double delta = norm - before.mean;
  contract::NormHistory after;
  after.count = before.count + 1;
  after.mean = before.mean + delta / (n + 1);
  after.variance = (n * before.variance + delta * (norm - after.mean)) / (n + 1);
  return after;
}

}  // namespace

double HistoryFactor(const contract::AdaptiveClipping& clipping, const contract::NormHistory& before, double norm) {
  constexpr double kEpsilon = 1e-6;
  if (WarmsUp(clipping, before)) return 1;
  const double factor = Threshold(clipping, before) / (norm + kEpsilon);
  return factor < 1 ? factor : 1;
}

contract::NormHistory HistoryAfter(const contract::AdaptiveClipping& clipping, const contract::NormHistory& before,
                                   double norm) {
  if (WarmsUp(clipping, before)) return AfterWarmingUp(before, norm);
  const double x = std::min(norm, Threshold(clipping, before));
  contract::NormHistory after;
  after.count = before.count + 1;
  after.mean = clipping.decay * before.mean + (1 - clipping.decay) * x;
  const double deviation = x - after.mean;
  after.variance = clipping.decay * before.variance + (1 - clipping.decay) * deviation * deviation;
  return after;
}

}  // namespace plumbline::reference
