// SPDX-License-Identifier: Apache-2.0
// The dynamic loss scale of fp16: its settings, and what it remembers (docs/semantics.md, "fp16"). No arithmetic.
#pragma once

#include <cstdint>

namespace plumbline::contract {

// Keys of `fp16` in a config, with DeepSpeed's defaults.
struct DynamicLossScale {
  int64_t initial_scale_power = 16;  // the first scale is 2^this
  int64_t window = 1000;             // steps without an overflow after which the scale doubles
  int64_t hysteresis = 2;            // overflows from which on the scale is halved
  bool consecutive_hysteresis = false;
  int64_t min_scale = 1;  // a power of two

  friend bool operator==(const DynamicLossScale&, const DynamicLossScale&) = default;
};

struct LossScaler {
  double scale = 1;            // σ, a power of two
  int64_t steps = 0;           // k: steps made, skipped ones too
  int64_t last_overflow = -1;  // l: k of the last step that was skipped; -1: none was
  int64_t hysteresis = 1;      // h: overflows left, of which the last one halves the scale

  friend bool operator==(const LossScaler&, const LossScaler&) = default;
};

// Before the first step of a training.
inline LossScaler InitialLossScaler(const DynamicLossScale& settings) {
  return {static_cast<double>(int64_t{1} << settings.initial_scale_power), 0, -1, settings.hysteresis};
}

}  // namespace plumbline::contract
