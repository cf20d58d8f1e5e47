// SPDX-License-Identifier: Apache-2.0
// Dropout, applied: the mask is an argument. Where masks come from is the model's business.
// Source: docs/exact-family.md and docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error in units in the last place of T: one rounding (of float; for BFloat16 a second one). Exact
// where the product is a T, as with scale 2 below overflow.
inline constexpr double kDropoutMaxUlp = 0.5;

// DropoutApply: y = scale * keep * x, the forward and, with the same mask, the backward.
//   x    [n]  in   T (float, BFloat16 or Float16)
//   keep [n]  in   u8, 0 or 1
//   y    [n]  out  T   may be the same memory as x
// Units: none. scale is 1 / (1 - rate).
// Elementwise in float: bitwise repeatable, independent of the element's place in the buffer. A dropped NaN stays NaN.
// Max error vs f64: kDropoutMaxUlp of float, and of T.  Errors: InvalidArgument if the sizes differ.
// Source: docs/exact-family.md, "Forward" (drop) and "Backward" (drop'); docs/semantics.md, "Family gpt2" (drop_j).
template <typename T>
void DropoutApply(std::span<const T> x, std::span<const uint8_t> keep, float scale, std::span<T> y);

}  // namespace plumbline::kernels
