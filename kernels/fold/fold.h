// SPDX-License-Identifier: Apache-2.0
// The fold of the exact family, forward and backward. Elementwise: nothing is reduced, padded or remembered here.
// Source: docs/exact-family.md, "Two maps".
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum error of both operations on their domain: they are exact.
inline constexpr double kFoldMaxError = 0;

// FoldForward: y = fold(x; bound) for each element: with p = (x + b) mod 4b, p - b where p <= 2b, else 3b - p.
//   x [n]  in   From (float, BFloat16 or Float16)   integers with |x| + bound < 2^24
//   y [n]  out  To   (float, BFloat16 or Float16)   in [-bound, bound]; may be the same memory as x where the types are
//   equal
// Units: none. bound is an integer in [1, 2^20]; for BFloat16 output at most 256 is exact.
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. NaN and infinity give
// NaN. Max error vs f64: kFoldMaxError.  Errors: InvalidArgument if the sizes differ or bound is outside its range.
// Source: docs/exact-family.md, "Two maps".
template <typename From, typename To>
void FoldForward(std::span<const From> x, float bound, std::span<To> y);

// FoldBackward: dx = dy * slope(x), slope +1 where p < 2b and -1 otherwise (so -1 at the kink p = 2b).
//   dy [n]  in   T
//   x  [n]  in   T   the unfolded value, an integer with |x| + bound < 2^24
//   dx [n]  out  T   may be the same memory as dy
// Units: none. bound as in FoldForward.
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. NaN in x gives NaN.
// Max error vs f64: kFoldMaxError.  Errors: InvalidArgument if the sizes differ or bound is outside its range.
// Source: docs/exact-family.md, "Two maps" and "Backward".
template <typename T>
void FoldBackward(std::span<const T> dy, std::span<const T> x, float bound, std::span<T> dx);

}  // namespace plumbline::kernels
