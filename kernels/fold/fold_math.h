// SPDX-License-Identifier: Apache-2.0
// The scalar fold and its slope, for kernels that fuse them with something else. No loops, no checks of arguments.
// Written without a branch and without floor(), so that compilers vectorise it for the baseline instruction set.
#pragma once

#include "kernels/arguments.h"

namespace plumbline::kernels {

struct FoldConstants {
  explicit FoldConstants(float fold_bound)
      : bound(fold_bound), turn(2 * fold_bound), period(4 * fold_bound), inverse_period(1 / (4 * fold_bound)) {
    Require(fold_bound >= 1 && fold_bound <= 1048576.0f, "fold", "the bound must be in [1, 2^20]");
  }
  float bound;
  float turn;
  float period;
  float inverse_period;
};

// p = (x + b) mod 4b in [0, 4b). Adding and subtracting 1.5 * 2^23 rounds the quotient to a nearby integer q (|q| <
// 2^22 on the domain); whichever neighbour it is, y - period * q is exact (period * q is a multiple of 4 below 2^26)
// and lies in
// (-period, period), so that one conditional addition ends the reduction.
inline float FoldPhase(float x, const FoldConstants& fold) {
  constexpr float kRoundingShift = 12582912.0f;
  const float y = x + fold.bound;
  const float q = (y * fold.inverse_period + kRoundingShift) - kRoundingShift;
  const float p = y - fold.period * q;
  return p < 0 ? p + fold.period : p;
}

inline float FoldValue(float x, const FoldConstants& fold) {
  const float p = FoldPhase(x, fold);
  return p <= fold.turn ? p - fold.bound : 3 * fold.bound - p;
}

// gradient * slope(x). A NaN in x must not become a slope, so the phase is added as zero times itself.
inline float TimesSlope(float gradient, float x, const FoldConstants& fold) {
  const float p = FoldPhase(x, fold);
  return (p < fold.turn ? gradient : -gradient) + 0.0f * p;
}

}  // namespace plumbline::kernels
