// SPDX-License-Identifier: Apache-2.0
// The ModularMomentum update on a slice: moment, master weight and working weight in one pass.
// It sees elements, not tensors: a slice may begin anywhere.
// Source: docs/exact-family.md, "Optimizers".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error on the domain: exact.
inline constexpr double kModularMomentumMaxError = 0;

// ModularMomentumStep: M <- wrap(M + D + t; 14);  U <- (U - M - t) mod 8(2w + 1);  W = floor(U / 8) - w.
//   gradient [n]  in      f32  D, integers of at most 2^24 in absolute value
//   moment   [n]  in-out  f32  M, integers in [-14, 14]
//   master   [n]  in-out  f32  U, integers in [0, 8(2w + 1))
//   weight   [n]  out     T (float, BFloat16 or Float16)  W; BFloat16 is exact for w <= 256
// No two arguments may overlap. Units: t is the step counter, 1 in the first step; w is the weight bound, in [1, 2^20].
// Elementwise (in double, which holds every intermediate): bitwise repeatable, independent of the element's place. NaN
// in an input gives NaN in what depends on it. Max error vs f64: kModularMomentumMaxError.  Errors: InvalidArgument if
// sizes differ, t < 1 or w is out of range. Source: docs/exact-family.md, "Optimizers".
template <typename T>
void ModularMomentumStep(int64_t t, int64_t weight_bound, std::span<const float> gradient, std::span<float> moment,
                         std::span<float> master, std::span<T> weight);

}  // namespace plumbline::kernels
