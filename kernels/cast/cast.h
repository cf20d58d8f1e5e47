// SPDX-License-Identifier: Apache-2.0
// Casts between storage types. One rounding, nothing else.
// Source: IEEE 754-2019, section 4.3.1 (roundTiesToEven).
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum error in units in the last place of the target type: half of one, nearest with ties to even.
inline constexpr double kCastMaxUlp = 0.5;

// Cast: y = x, rounded once to the nearest value of To, ties to even.
//   x [n]  in   From (float, BFloat16 or Float16)
//   y [n]  out  To   (float, BFloat16 or Float16)   aliases nothing
// Units: none. Widening is exact.
// Elementwise: bitwise repeatable, independent of the element's place in the buffer. NaN stays NaN, overflow is
// infinite. Max error vs f64: kCastMaxUlp.  Errors: InvalidArgument if the sizes differ. Source: IEEE 754-2019, 4.3.1.
template <typename From, typename To>
void Cast(std::span<const From> x, std::span<To> y);

}  // namespace plumbline::kernels
