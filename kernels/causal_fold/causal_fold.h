// SPDX-License-Identifier: Apache-2.0
// The fold of attention scores under a causal mask, forward and backward, on any number of stacked score matrices.
// The products around it belong to the caller.
// Source: docs/exact-family.md, "Forward" (a_i) and "Backward" (ds).
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error of both operations on their domain: they are exact.
inline constexpr double kCausalFoldMaxError = 0;

// CausalFoldForward: a[m, s, t] = fold(z[m, s, t]; bound) where t <= s, else 0.
//   z [matrices, positions, positions]  in   T (float, BFloat16 or Float16)   integers with |z| + bound < 2^24 where t
//   <= s a [matrices, positions, positions]  out  T                       may be the same memory as z
// Units: none. bound as in fold.h. What z holds above the diagonal is not read.
// Elementwise in float: bitwise repeatable. NaN at or below the diagonal gives NaN.
// Max error vs f64: kCausalFoldMaxError.
// Errors: InvalidArgument if positions < 1, a size is no multiple of positions^2, sizes differ or bound is out of
// range. Source: docs/exact-family.md, "Forward".
template <typename T>
void CausalFoldForward(int64_t positions, std::span<const T> z, float bound, std::span<T> a);

// CausalFoldBackward: ds[m, s, t] = fold(da[m, s, t]; gradient_bound) * slope(z[m, s, t]; bound) where t <= s, else 0.
//   da [matrices, positions, positions]  in   T   the complete product, not folded yet
//   z  [matrices, positions, positions]  in   T   the unfolded scores of the forward
//   ds [matrices, positions, positions]  out  T   may be the same memory as da
// Units: none. Both bounds as in fold.h. Nothing is read above the diagonal.
// Elementwise in float: bitwise repeatable. NaN at or below the diagonal gives NaN.
// Max error vs f64: kCausalFoldMaxError.  Errors: as for the forward.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void CausalFoldBackward(int64_t positions, std::span<const T> da, std::span<const T> z, float bound,
                        float gradient_bound, std::span<T> ds);

}  // namespace plumbline::kernels
