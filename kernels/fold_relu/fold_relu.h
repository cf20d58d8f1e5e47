// SPDX-License-Identifier: Apache-2.0
// The activation of the exact family's MLP: a fold followed by max(., 0), forward and backward. Elementwise.
// Source: docs/exact-family.md, "Forward" (r) and "Backward" (du).
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum error of both operations on their domain: they are exact.
inline constexpr double kFoldReluMaxError = 0;

// FoldReluForward: r = max(fold(z; bound), 0).
//   z [n]  in   T (float, BFloat16 or Float16)   integers with |z| + bound < 2^24
//   r [n]  out  T                       may be the same memory as z
// Units: none. bound as in fold.h.
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. NaN gives NaN.
// Max error vs f64: kFoldReluMaxError.  Errors: InvalidArgument if the sizes differ or a bound is outside its range.
// Source: docs/exact-family.md, "Forward".
template <typename T>
void FoldReluForward(std::span<const T> z, float bound, std::span<T> r);

// FoldReluBackward: dz = fold(dr; gradient_bound) * [fold(z; bound) > 0] * slope(z; bound).
//   dr [n]  in   T   the complete product, not folded yet
//   z  [n]  in   T   the unfolded value of the forward
//   dz [n]  out  T   may be the same memory as dr
// Units: none. Both bounds as in fold.h.
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. NaN in z gives NaN.
// Max error vs f64: kFoldReluMaxError.  Errors: InvalidArgument if the sizes differ or a bound is outside its range.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void FoldReluBackward(std::span<const T> dr, std::span<const T> z, float bound, float gradient_bound, std::span<T> dz);

}  // namespace plumbline::kernels
