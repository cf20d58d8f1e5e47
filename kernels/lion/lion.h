// SPDX-License-Identifier: Apache-2.0
// The Lion update on a slice: moment, master weight and working weight in one pass. It sees elements, not tensors: a
// slice may begin anywhere. Source: Chen et al. 2023, algorithm 2; docs/semantics.md, "One step".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error in units of 2^-24 of what the operation names.
inline constexpr double kLionMaxUnits = 8;

// How near to 0, in units of 2^-53 of what it is the sum of, the argument of the sign may have the wrong one.
inline constexpr double kLionSignUnits = 4;

struct LionOptions {
  double lr = 1e-3;
  double beta1 = 0.9;   // in [0, 1)
  double beta2 = 0.99;  // in [0, 1)
  double weight_decay = 0;
  double gradient_scale = 1;  // of clipping; multiplies every gradient
};

// LionStep: g = gradient_scale * gradient;  c = beta1 m + (1 - beta1) g;  p <- p (1 - lr weight_decay) - lr sign(c),
// with sign(0) = 0;  then m <- beta2 m + (1 - beta2) g;  W = p.
//   gradient [n]  in      f32
//   moment   [n]  in-out  f32  m
//   master   [n]  in-out  f32  p
//   weight   [n]  out     T (float, BFloat16 or Float16)  W: p, rounded once
// No two arguments may overlap, but for T = float weight may be the same memory as master.
// Units: none. Elementwise (factors of the whole update in double, then rounded once): bitwise repeatable, independent
// of the element's place. NaN in an input gives NaN in what depends on it.
// Max error vs f64: with k = kLionMaxUnits * 2^-24,  k (|beta2 m| + |(1 - beta2) g|) + 2^-148 for m;  k (|p| + lr) for
// p where |c| > kLionSignUnits * 2^-53 * (|beta1 m| + |(1 - beta1) g|) or both of these are 0, else 2 lr more: a sign
// has no small errors, so c is computed in double. Errors: InvalidArgument if sizes differ or an option is out of
// range. Source: Chen et al. 2023, algorithm 2.
template <typename T>
void LionStep(const LionOptions& options, std::span<const float> gradient, std::span<float> moment,
              std::span<float> master, std::span<T> weight);

}  // namespace plumbline::kernels
