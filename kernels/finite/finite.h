// SPDX-License-Identifier: Apache-2.0
// Whether a buffer holds a NaN or an infinity. Source: IEEE 754-2019, section 3.4 (an exponent of all ones).
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum error: exact.
inline constexpr double kFiniteMaxError = 0;

// AllFinite: true if no element is NaN, infinity or minus infinity. An empty buffer is all finite.
//   x [n]  in  T (float or BFloat16)
// Units: none. Integer arithmetic on the bits: bitwise repeatable. Max error: kFiniteMaxError.
// Errors: none.  Source: IEEE 754-2019, section 3.4.
template <typename T>
bool AllFinite(std::span<const T> x);

}  // namespace plumbline::kernels
