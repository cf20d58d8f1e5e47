// SPDX-License-Identifier: Apache-2.0
// Adds a bias to every row, and its gradient, the sums of columns. Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum errors in units of 2^-24 of what each operation names.
inline constexpr double kBiasMaxUnits = 1;
constexpr double BiasGradientMaxUnits(int64_t rows) { return static_cast<double>(rows) + 1; }

// BiasForward: y = x + bias for each row.
//   x    [rows, width]  in   From (float, BFloat16 or Float16)   float: a product that was not rounded to T yet
//   bias [width]        in   T (float, BFloat16 or Float16)
//   y    [rows, width]  out  T    may be the same memory as x where From is T
// Units: none. Elementwise in float: bitwise repeatable, independent of the element's place.
// Max error vs f64: kBiasMaxUnits * 2^-24 * |y|, plus one rounding to T.
// Errors: InvalidArgument if a size does not match.  Source: docs/semantics.md, "Family gpt2".
template <typename From, typename T>
void BiasForward(int64_t rows, std::span<const From> x, std::span<const T> bias, std::span<T> y);

// BiasBackward: dbias += sum over rows of dy.
//   dy    [rows, width]  in      T (float, BFloat16 or Float16)
//   dbias [width]        in-out  f32  aliases nothing
// Units: those of dy. Adds rows in their order, in float: bitwise repeatable.
// Max error vs f64: BiasGradientMaxUnits(rows) * 2^-24 * (|what was there| + sum of |dy|).
// Errors: InvalidArgument if a size does not match.  Source: docs/semantics.md, "Family gpt2".
template <typename T>
void BiasBackward(int64_t rows, std::span<const T> dy, std::span<float> dbias);

}  // namespace plumbline::kernels
