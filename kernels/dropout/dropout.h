// SPDX-License-Identifier: Apache-2.0
// Dropout of rate 1/2: the mask as a function of logical coordinates, and its application. The mask knows no rank and no
// micro-batch: the caller says where in the global tensor its elements begin.
// Source: docs/exact-family.md, "Random draws" and "Forward".
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/random_stream.h"

namespace plumbline::kernels {

// Declared maximum error of both operations: they are exact.
inline constexpr double kDropoutMaxError = 0;

// DropoutMask: keep[i] = 1 where the top bit of Draw(seed, site, step, layer, first_element + i) is set, else 0.
//   keep [n]  out  u8
// Units: elements; first_element >= 0 is the row-major index of keep[0] in the tensor of the global batch.
// Four neighbouring elements share one Philox block, which is computed once. Bitwise repeatable.
// Max error: kDropoutMaxError (integers).  Errors: InvalidArgument if first_element, step or layer is negative.
// Source: docs/exact-family.md, "Random draws".
void DropoutMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t first_element,
                 std::span<uint8_t> keep);

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
