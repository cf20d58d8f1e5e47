// SPDX-License-Identifier: Apache-2.0
// See history_clipping.h. Letters in comments are those of docs/semantics.md.
#include "optimized/optimizer/history_clipping.h"

#include <algorithm>
#include <cmath>

namespace plumbline::optimized {
namespace {

using contract::AdaptiveClipping;
using contract::NormHistory;

bool IsWarmingUp(const AdaptiveClipping& options, const NormHistory& history) {
  return history.count < options.warmup_steps;
}

// tau, after the warm-up.
double Threshold(const AdaptiveClipping& options, const NormHistory& history) {
  return history.mean + options.deviations * std::sqrt(history.variance);
}

// Mean and variance of all norms so far, over their number (Welford 1962).
NormHistory RememberInWarmup(const NormHistory& history, double norm) {
  const auto count = static_cast<double>(history.count);
  const double difference = norm - history.mean;
  const double mean = history.mean + difference / (count + 1);
  return {history.count + 1, mean, (count * history.variance + difference * (norm - mean)) / (count + 1)};
}

}  // namespace

double HistoryCoefficient(const AdaptiveClipping& options, const NormHistory& history, double norm) {
  if (IsWarmingUp(options, history)) return 1;
  return std::min(1.0, Threshold(options, history) / (norm + 1e-6));
}

NormHistory Remember(const AdaptiveClipping& options, const NormHistory& history, double norm) {
  if (IsWarmingUp(options, history)) return RememberInWarmup(history, norm);
  const double seen = std::min(norm, Threshold(options, history));
  const double mean = options.decay * history.mean + (1 - options.decay) * seen;
  const double distance = seen - mean;  // from the new mean
  return {history.count + 1, mean, options.decay * history.variance + (1 - options.decay) * distance * distance};
}

}  // namespace plumbline::optimized
