// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/loss_scalers.h"

#include <algorithm>

namespace plumbline::conformance {

contract::LossScaler FirstLossScaler(const contract::DynamicLossScale& settings) {
  constexpr int64_t kSteps = 20;
  int64_t scale = kLargestLossScale;
  for (int64_t doubled = 0; doubled < kSteps / settings.window && scale > 1; ++doubled) scale /= 2;
  scale = std::max(std::min(scale, kSmallestLossScale), settings.min_scale);
  return {static_cast<double>(scale), 0, -1, settings.hysteresis};
}

contract::LossScaler StepLossScaler(const contract::DynamicLossScale& settings, size_t i) {
  constexpr int64_t kBefore = 7;  // the window
  int64_t scale = kSmallestLossScale << (i % 5);
  const bool ends_window = i % 2 == 0 && scale < kLargestLossScale;
  scale = std::max(scale, settings.min_scale);
  const int64_t last_overflow = kBefore + (ends_window || settings.window == 1 ? 0 : 1);
  return {static_cast<double>(scale), kBefore + settings.window, last_overflow, 1};
}

contract::LossScaler SkippedLossScaler(const contract::DynamicLossScale& settings) {
  return {static_cast<double>(std::max(kSmallestLossScale, settings.min_scale)), 9, 7, 1};
}

contract::LossScaler OverflowingLossScaler(const contract::DynamicLossScale& settings) {
  return {0x1p40, 9, 7, settings.hysteresis};
}

}  // namespace plumbline::conformance
