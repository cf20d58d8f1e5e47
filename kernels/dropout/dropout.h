// SPDX-License-Identifier: Apache-2.0
// Dropout of rate 1/2, applied: the mask is an argument. Where masks come from is the model's business.
// Source: docs/exact-family.md, "Forward" and "Backward".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error: exact.
inline constexpr double kDropoutMaxError = 0;

// DropoutApply: y = 2 * keep * x, the forward and, with the same mask, the backward.
//   x    [n]  in   T (float or BFloat16)
//   keep [n]  in   u8, 0 or 1
//   y    [n]  out  T   may be the same memory as x
// Units: none. Doubling is exact in every floating-point type below overflow.
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. A dropped NaN stays NaN.
// Max error vs f64: kDropoutMaxError.  Errors: InvalidArgument if the sizes differ.
// Source: docs/exact-family.md, "Forward" (drop) and "Backward" (drop').
template <typename T>
void DropoutApply(std::span<const T> x, std::span<const uint8_t> keep, std::span<T> y);

}  // namespace plumbline::kernels
