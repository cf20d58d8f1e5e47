// SPDX-License-Identifier: Apache-2.0
// Implementation of loss_scaler.h.
#include "conformance/engines/torch_eager/loss_scaler.h"

#include <algorithm>

namespace plumbline::conformance::torch_eager {
namespace {

using contract::DynamicLossScale;
using contract::LossScaler;

constexpr double kLargestScale = 0x1p126;

LossScaler AfterOverflow(const DynamicLossScale& settings, LossScaler scaler) {
  if (scaler.hysteresis == 1 || settings.hysteresis == 1) {
    scaler.scale = std::max(scaler.scale / 2, static_cast<double>(settings.min_scale));
  } else {
    --scaler.hysteresis;
  }
  scaler.last_overflow = scaler.steps;
  return scaler;
}

LossScaler AfterUpdate(const DynamicLossScale& settings, LossScaler scaler) {
  if (settings.consecutive_hysteresis) scaler.hysteresis = settings.hysteresis;
  if ((scaler.steps - scaler.last_overflow) % settings.window == 0) {
    if (2 * scaler.scale <= kLargestScale) scaler.scale *= 2;
    scaler.hysteresis = settings.hysteresis;
  }
  return scaler;
}

}  // namespace

LossScaler AfterStep(const DynamicLossScale& settings, const LossScaler& before, bool skipped) {
  LossScaler after = skipped ? AfterOverflow(settings, before) : AfterUpdate(settings, before);
  ++after.steps;
  return after;
}

}  // namespace plumbline::conformance::torch_eager
