// SPDX-License-Identifier: Apache-2.0
// What "the same number" means wherever no distance is allowed. The oracle's own.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "conformance/contract/loss_scale.h"
#include "conformance/contract/norm_history.h"

namespace plumbline::conformance {

// Equal in every bit, so that -0 is not +0 and a subnormal number is not 0; but one NaN is as good as another:
// conversions between types choose its sign and payload, and a trace writes all of them, and Inf, as null.
inline bool SameNumber(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

inline bool SameHistory(const std::optional<contract::NormHistory>& a, const std::optional<contract::NormHistory>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->count == b->count && SameNumber(a->mean, b->mean) && SameNumber(a->variance, b->variance);
}

inline bool SameScaler(const std::optional<contract::LossScaler>& a, const std::optional<contract::LossScaler>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return SameNumber(a->scale, b->scale) && a->steps == b->steps && a->last_overflow == b->last_overflow &&
         a->hysteresis == b->hysteresis;
}

}  // namespace plumbline::conformance
