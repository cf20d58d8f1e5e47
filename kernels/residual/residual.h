// SPDX-License-Identifier: Apache-2.0
// The residual join of the exact family, forward and backward. Elementwise; dropout is an operation of its own.
// Source: docs/exact-family.md, "Forward" and "Backward".
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum errors: of the backward, which is exact on its domain, and of the forward in units in the last place
// of T, one rounding (of float; for BFloat16 a second one).
inline constexpr double kResidualMaxError = 0;
inline constexpr double kResidualForwardMaxUlp = 0.5;

// ResidualForward: y = x + branch.
//   x      [n]  in   T (float, BFloat16 or Float16)
//   branch [n]  in   T
//   y      [n]  out  T   may be the same memory as x or branch
// Units: none. Exact where the sum is an integer of at most 2^24 (float) or 2^8 (BFloat16).
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer.
// Max error vs f64: kResidualForwardMaxUlp of float, and of T.  Errors: InvalidArgument if the sizes differ.
// Source: docs/exact-family.md, "Forward"; docs/semantics.md, "Family gpt2".
template <typename T>
void ResidualForward(std::span<const T> x, std::span<const T> branch, std::span<T> y);

// ResidualBackward: dx = G(dx + G(branch) * slope(x; bound)), with G(v) = fold(v; gradient_bound).
//   branch [n]  in      From (float, BFloat16 or Float16)   the complete sum that flows back through the branch, not
//   folded yet x      [n]  in      T    the stream before the branch (its fold's input) dx     [n]  in-out  T aliases
//   nothing
// Units: none. Both bounds as in fold.h.
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. NaN in any input gives
// NaN. Max error vs f64: kResidualMaxError.  Errors: InvalidArgument if the sizes differ or a bound is outside its
// range. Source: docs/exact-family.md, "Backward".
template <typename From, typename T>
void ResidualBackward(std::span<const From> branch, std::span<const T> x, float bound, float gradient_bound,
                      std::span<T> dx);

}  // namespace plumbline::kernels
