// SPDX-License-Identifier: Apache-2.0
// Normalisation of a row by its root mean square, forward and backward, with learned weight. The backward is in two
// operations, so that a frozen weight costs nothing. Source: Zhang, Sennrich 2019, eq. 4; docs/semantics.md, "Family
// llama" (RMS).
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum errors of the operations below, in units of 2^-24 of what each of them names. Forward: a square and
// its sum, the division, epsilon and the root count half, for the root halves them; then the quotient and two products.
constexpr double RmsNormMaxUnits(int64_t width) { return static_cast<double>(width) / 32 + 9; }
constexpr double RmsNormBackwardMaxUnits(int64_t width) { return static_cast<double>(width) / 16 + 16; }
constexpr double RmsNormWeightGradientMaxUnits(int64_t rows) { return static_cast<double>(rows) + 4; }

struct RmsNormSizes {
  int64_t rows = 0;   // >= 0
  int64_t width = 0;  // >= 1
};

// RmsNormForward: y = x * rstd * weight for each row, rstd = 1 / sqrt(average(x^2) + epsilon).
//   x      [rows, width]  in   T (float, BFloat16 or Float16)
//   weight [width]        in   T
//   y      [rows, width]  out  T     may be the same memory as x
//   rstd   [rows]         out  f32   kept for the backward
// Units: epsilon is in units of x squared. Accumulates in float in an order that depends on width alone: bitwise
// repeatable, independent of the row's place. NaN or infinity in a row makes the row NaN, and so does a sum of squares
// that is above all floats: rather that than zeros which nobody notices.
// Max error vs f64: RmsNormMaxUnits(width) * 2^-24 * |y|, plus one rounding to T; for epsilon >= 2^-100.
// Errors: InvalidArgument if a size does not match, width < 1 or epsilon <= 0.  Source: Zhang, Sennrich 2019, eq. 4.
template <typename T>
void RmsNormForward(const RmsNormSizes& sizes, std::span<const T> x, std::span<const T> weight, float epsilon,
                    std::span<T> y, std::span<float> rstd);

// RmsNormBackward: with g = dy * weight and n = x * rstd,  dx = residual + rstd * (g - n * average(g * n)).
//   dy       [rows, width]  in   From (float or T)
//   x        [rows, width]  in   T (float, BFloat16 or Float16)
//   weight   [width]        in   T
//   rstd     [rows]         in   f32
//   residual [rows, width]  in   T    what flows around the norm; or empty: nothing
//   dx       [rows, width]  out  T    may be the same memory as dy or as residual
// Units: those of dy over x. Accumulates in float in an order that depends on width alone: bitwise repeatable.
// Max error vs f64: RmsNormBackwardMaxUnits(width) * 2^-24 * (rstd * max|g| * (1 + max|n|^2) + |residual|), maxima over
// the row, plus one rounding to T.
// Errors: InvalidArgument if a size does not match or width < 1.  Source: derivative of eq. 4.
template <typename From, typename T>
void RmsNormBackward(const RmsNormSizes& sizes, std::span<const From> dy, std::span<const T> x,
                     std::span<const T> weight, std::span<const float> rstd, std::span<const T> residual,
                     std::span<T> dx);

// RmsNormWeightBackward: dweight += sum over rows of dy * x * rstd.
//   dy, x, rstd       in      as above
//   dweight [width]   in-out  f32  aliases nothing
// Units: those of dy. Adds rows in their order, in float: bitwise repeatable.
// Max error vs f64: RmsNormWeightGradientMaxUnits(rows) * 2^-24 * (|what was there| + sum of |dy * x| * rstd).
// Errors: InvalidArgument if a size does not match or width < 1.  Source: derivative of eq. 4.
template <typename From, typename T>
void RmsNormWeightBackward(const RmsNormSizes& sizes, std::span<const From> dy, std::span<const T> x,
                           std::span<const float> rstd, std::span<float> dweight);

}  // namespace plumbline::kernels
