// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the channels of a row, forward and backward, with learned weight and bias. The backward is
// in two operations, so that a frozen weight costs nothing. Source: Ba, Kiros, Hinton 2016, eq. 4.
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error of the operations below, in units of 2^-24 of the magnitudes that each of them names.
constexpr double LayerNormMaxUnits(int64_t width) { return static_cast<double>(width) / 16 + 16; }
constexpr double LayerNormWeightGradientMaxUnits(int64_t rows) { return static_cast<double>(rows) + 6; }

struct LayerNormSizes {
  int64_t rows = 0;   // >= 0
  int64_t width = 0;  // >= 1
};

// LayerNormForward: y = (x - mean) * rstd * weight + bias for each row, rstd = 1 / sqrt(var + epsilon), var biased.
//   x      [rows, width]  in   T (float, BFloat16 or Float16)
//   weight [width]        in   T
//   bias   [width]        in   T
//   y      [rows, width]  out  T     may be the same memory as x
//   mean   [rows]         out  f32   kept for the backward
//   rstd   [rows]         out  f32   kept for the backward
// Units: epsilon is in units of x squared. Accumulates in float in an order that depends on width alone: bitwise
// repeatable, independent of the row's place. NaN or infinity in a row makes the row NaN.
// Max error vs f64: LayerNormMaxUnits(width) * 2^-24 * (|weight| * (max|x| * rstd + |x - mean| * rstd) + |bias|), plus
// one rounding to T; where max|x| * rstd * (width / 16 + 8) <= 2^12.
// Errors: InvalidArgument if a size does not match, width < 1 or epsilon <= 0.  Source: Ba, Kiros, Hinton 2016, eq. 4.
template <typename T>
void LayerNormForward(const LayerNormSizes& sizes, std::span<const T> x, std::span<const T> weight,
                      std::span<const T> bias, float epsilon, std::span<T> y, std::span<float> mean,
                      std::span<float> rstd);

// LayerNormBackward: with g = dy * weight and n = (x - mean) * rstd,
//   dx = residual + rstd * (g - average(g) - n * average(g * n)).
//   dy       [rows, width]  in   T (float, BFloat16 or Float16)
//   x        [rows, width]  in   T
//   weight   [width]        in   T
//   mean     [rows]         in   f32
//   rstd     [rows]         in   f32
//   residual [rows, width]  in   T    what flows around the norm; or empty: nothing
//   dx       [rows, width]  out  T    may be the same memory as dy or as residual
// Units: those of dy over x. Accumulates in float in an order that depends on width alone: bitwise repeatable.
// Max error vs f64: with S = max over the row of (|x| + |mean|) * rstd,
// LayerNormMaxUnits(width) * 2^-24 * (rstd * max|g| * (1 + S)^2 + |residual|), plus one rounding to T.
// Errors: InvalidArgument if a size does not match or width < 1.  Source: derivative of eq. 4.
template <typename T>
void LayerNormBackward(const LayerNormSizes& sizes, std::span<const T> dy, std::span<const T> x,
                       std::span<const T> weight, std::span<const float> mean, std::span<const float> rstd,
                       std::span<const T> residual, std::span<T> dx);

// LayerNormWeightBackward: dweight += sum over rows of dy * (x - mean) * rstd;  dbias += sum over rows of dy.
//   dy, x, mean, rstd       in      as above
//   dweight [width]         in-out  f32  or empty: not wanted
//   dbias   [width]         in-out  f32  or empty: not wanted
// No output overlaps anything. Units: those of dy. Adds rows in their order, in float: bitwise repeatable.
// Max error vs f64: LayerNormWeightGradientMaxUnits(rows) * 2^-24 * (|what was there| + sum of |dy| * (|x| + |mean|) *
// rstd) for dweight, with sum of |dy| for dbias.
// Errors: InvalidArgument if a size does not match or width < 1.  Source: derivative of eq. 4.
template <typename T>
void LayerNormWeightBackward(const LayerNormSizes& sizes, std::span<const T> dy, std::span<const T> x,
                             std::span<const float> mean, std::span<const float> rstd, std::span<float> dweight,
                             std::span<float> dbias);

}  // namespace plumbline::kernels
