// SPDX-License-Identifier: Apache-2.0
// See loss_scaler.h. Letters in comments are those of docs/semantics.md.
#include "optimized/optimizer/loss_scaler.h"

#include <algorithm>

namespace plumbline::optimized {
namespace {

using contract::DynamicLossScale;
using contract::LossScaler;

// k and l are those of the step that is over.
LossScaler AfterOverflow(const DynamicLossScale& settings, LossScaler scaler) {
  if (scaler.hysteresis == 1 || settings.hysteresis == 1) {
    scaler.scale = std::max(scaler.scale / 2, static_cast<double>(settings.min_scale));
  } else {
    scaler.hysteresis -= 1;
  }
  scaler.last_overflow = scaler.steps;
  return scaler;
}

LossScaler AfterUpdate(const DynamicLossScale& settings, LossScaler scaler) {
  if (settings.consecutive_hysteresis) scaler.hysteresis = settings.hysteresis;
  if ((scaler.steps - scaler.last_overflow) % settings.window != 0) return scaler;
  if (2 * scaler.scale <= kMaxLossScale) scaler.scale *= 2;
  scaler.hysteresis = settings.hysteresis;
  return scaler;
}

}  // namespace

double LossScale(const contract::RunConfig& config, const LossScaler& scaler) {
  return contract::HasDynamicLossScale(config) ? scaler.scale : static_cast<double>(config.loss_scale);
}

LossScaler AfterStep(const DynamicLossScale& settings, const LossScaler& scaler, bool skipped) {
  LossScaler next = skipped ? AfterOverflow(settings, scaler) : AfterUpdate(settings, scaler);
  next.steps += 1;
  return next;
}

}  // namespace plumbline::optimized
