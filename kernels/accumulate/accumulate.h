// SPDX-License-Identifier: Apache-2.0
// Adds one buffer to another, as accumulation over micro-batches and sums over ranks need. Elementwise.
// Source: docs/exact-family.md, "Backward" (weight gradients are plain sums).
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum error in units in the last place: one rounding; 0 where the sum is exact in T.
inline constexpr double kAccumulateMaxUlp = 0.5;

// Accumulate: sum = sum + x, rounded once to T.
//   x   [n]  in      T (float, BFloat16 or double)
//   sum [n]  in-out  T   aliases nothing
// Units: none.
// Elementwise (BFloat16 in float): bitwise repeatable, independent of the element's place in the buffer.
// Max error vs f64: kAccumulateMaxUlp.  Errors: InvalidArgument if the sizes differ.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void Accumulate(std::span<const T> x, std::span<T> sum);

}  // namespace plumbline::kernels
