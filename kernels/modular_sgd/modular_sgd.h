// SPDX-License-Identifier: Apache-2.0
// The ModularSGD update on a slice: master weight and working weight in one pass. It has no moment and no step counter.
// Source: docs/exact-family.md, "Optimizers".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error on the domain: exact.
inline constexpr double kModularSgdMaxError = 0;

// ModularSgdStep: U <- (U - D) mod 8(2w + 1);  W = floor(U / 8) - w.
//   gradient [n]  in      f32  D, integers of at most 2^24 in absolute value
//   master   [n]  in-out  f32  U, integers in [0, 8(2w + 1))
//   weight   [n]  out     T (float, BFloat16 or Float16)  W; BFloat16 is exact for w <= 256
// No two arguments may overlap. Units: w is the weight bound, in [1, 2^20].
// Elementwise (in double, which holds every intermediate): bitwise repeatable, independent of the element's place. NaN
// in an input gives NaN in both outputs. Max error vs f64: kModularSgdMaxError.  Errors: InvalidArgument if sizes
// differ or w is out of range. Source: docs/exact-family.md, "Optimizers".
template <typename T>
void ModularSgdStep(int64_t weight_bound, std::span<const float> gradient, std::span<float> master,
                    std::span<T> weight);

}  // namespace plumbline::kernels
