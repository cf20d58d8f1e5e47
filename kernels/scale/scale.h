// SPDX-License-Identifier: Apache-2.0
// Multiplies a buffer by a number, or each of its elements by one of its own. Elementwise. Source: docs/semantics.md,
// "One step" (clipping).
#pragma once

#include <span>

namespace plumbline::kernels {

// Declared maximum error in units in the last place of T: one rounding (of float; for BFloat16 a second one).
inline constexpr double kScaleMaxUlp = 0.5;

// Scale: y = factor * x.
//   x [n]  in   T (float or BFloat16)
//   y [n]  out  T   may be the same memory as x
// Units: none. Elementwise in float: bitwise repeatable, independent of the element's place. NaN stays NaN.
// Max error vs f64: kScaleMaxUlp of float, and of T.  Errors: InvalidArgument if the sizes differ.
// Source: docs/semantics.md, "One step".
template <typename T>
void Scale(float factor, std::span<const T> x, std::span<T> y);

// ScaleEach: y = factors * x.
//   factors [n]  in   f32
//   x       [n]  in   f32
//   y       [n]  out  f32  may be the same memory as x
// All else as above.
void ScaleEach(std::span<const float> factors, std::span<const float> x, std::span<float> y);

}  // namespace plumbline::kernels
