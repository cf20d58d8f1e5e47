// SPDX-License-Identifier: Apache-2.0
// Mathematical mod and floor on integers held in floating point, for the modular optimizers. Scalars only.
// Branch-free and free of library calls, so that loops over them vectorise for the baseline instruction set; NaN stays
// NaN.
#pragma once

namespace plumbline::kernels {

// x mod n in [0, n), for integers |x| < 2^50 and 1 <= n < 2^30. Adding and subtracting 1.5 * 2^52 rounds the quotient
// to a neighbour; the remainder then lies in (-n, n) and is exact, because every term is an integer below 2^53.
inline double Mod(double x, double n) {
  constexpr double kRoundingShift = 6755399441055744.0;
  const double quotient = (x * (1 / n) + kRoundingShift) - kRoundingShift;
  const double remainder = x - n * quotient;
  return remainder < 0 ? remainder + n : remainder;
}

// floor(x) for |x| < 2^50.
inline double Floor(double x) {
  constexpr double kRoundingShift = 6755399441055744.0;
  const double rounded = (x + kRoundingShift) - kRoundingShift;
  return rounded > x ? rounded - 1 : rounded;
}

}  // namespace plumbline::kernels
