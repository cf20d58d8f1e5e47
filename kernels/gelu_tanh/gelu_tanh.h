// SPDX-License-Identifier: Apache-2.0
// The tanh form of GELU, forward and backward. Elementwise. Source: Hendrycks, Gimpel 2016; docs/semantics.md.
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum errors in units of 2^-24 of what each operation names.
inline constexpr double kGeluTanhMaxUnits = 8;
inline constexpr double kGeluTanhBackwardMaxUnits = 32;

// GeluTanhForward: y = 0.5 x (1 + tanh(z / 2)),  z = 2 sqrt(2/pi) (x + 0.044715 x^3),  computed as x / (1 + e^-z),
// which does not cancel where the result is small.
//   x [n]  in   T (float, BFloat16 or Float16)
//   y [n]  out  T   may be the same memory as x
// Units: none. Elementwise in float: bitwise repeatable, independent of the element's place. NaN gives NaN, infinity
// infinity, and minus infinity NaN (0 times infinity in the formula, as in PyTorch).
// Max error vs f64: kGeluTanhMaxUnits * 2^-24 * |x|, plus one rounding to T.
// Errors: InvalidArgument if the sizes differ.  Source: Hendrycks, Gimpel 2016, section 2.
template <typename T>
void GeluTanhForward(std::span<const T> x, std::span<T> y);

// GeluTanhBackward: dx = dy * (s + x s (1 - s) dz/dx),  s = 1 / (1 + e^-z).
//   dy [n]  in   T (float, BFloat16 or Float16)
//   x  [n]  in   T   the forward's input
//   dx [n]  out  T   may be the same memory as dy
// Units: those of dy. Elementwise in float: bitwise repeatable, independent of the element's place. NaN gives NaN; x of
// infinity gives dy, of minus infinity 0.
// Max error vs f64: kGeluTanhBackwardMaxUnits * 2^-24 * |dy|, plus one rounding to T.
// Errors: InvalidArgument if the sizes differ.  Source: derivative of the forward.
template <typename T>
void GeluTanhBackward(std::span<const T> dy, std::span<const T> x, std::span<T> dx);

}  // namespace plumbline::kernels
