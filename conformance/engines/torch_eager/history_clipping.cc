// SPDX-License-Identifier: Apache-2.0
// Implementation of history_clipping.h.
#include "conformance/engines/torch_eager/history_clipping.h"

#include <algorithm>
#include <cmath>

namespace plumbline::conformance::torch_eager {
namespace {

using contract::AdaptiveClipping;
using contract::NormHistory;

// Mean and variance of all norms so far, the variance over their number (Welford 1962).
NormHistory Counted(const NormHistory& history, double norm) {
  const auto n = static_cast<double>(history.count);
  const double delta = norm - history.mean;
  const double mean = history.mean + delta / (n + 1);
  return {history.count + 1, mean, (n * history.variance + delta * (norm - mean)) / (n + 1)};
}

// The deviation is from the new mean.
NormHistory Averaged(const NormHistory& history, double norm, double decay) {
  const double mean = decay * history.mean + (1 - decay) * norm;
  const double deviation = norm - mean;
  return {history.count + 1, mean, decay * history.variance + (1 - decay) * deviation * deviation};
}

}  // namespace

std::optional<double> Threshold(const AdaptiveClipping& clipping, const NormHistory& history) {
  if (history.count < clipping.warmup_steps) return std::nullopt;
  return history.mean + clipping.deviations * std::sqrt(history.variance);
}

NormHistory WithNorm(const AdaptiveClipping& clipping, const NormHistory& history, double norm) {
  const std::optional<double> threshold = Threshold(clipping, history);
  if (!threshold) return Counted(history, norm);
  return Averaged(history, std::min(norm, *threshold), clipping.decay);
}

}  // namespace plumbline::conformance::torch_eager
