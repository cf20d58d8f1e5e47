// SPDX-License-Identifier: Apache-2.0
// The updates of AdamW and of Adam, which differ in the place of the decay alone, on a slice: both moments, master
// weight and working weight in one pass. It sees elements, not tensors: a slice may begin anywhere. Source: Loshchilov,
// Hutter 2019, algorithm 2 (both); docs/semantics.md, "One step".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error in units of 2^-24 of what the operation names.
inline constexpr double kAdamWMaxUnits = 12;

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;     // in [0, 1)
  double beta2 = 0.999;   // in [0, 1)
  double epsilon = 1e-8;  // >= 0
  double weight_decay = 0;
  bool decoupled = true;      // false: Adam, which adds the decay to the gradient
  int64_t t = 1;              // number of this update, from 1
  double gradient_scale = 1;  // of clipping; multiplies every gradient
};

// AdamWStep: g = gradient_scale * gradient;  p <- p (1 - lr weight_decay);  m <- beta1 m + (1 - beta1) g;
// v <- beta2 v + (1 - beta2) g^2;  p <- p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon);  W = p.
// Not decoupled: g = gradient_scale * gradient + weight_decay * p, and p keeps its size before the last step.
//   gradient      [n]  in      f32
//   first_moment  [n]  in-out  f32  m
//   second_moment [n]  in-out  f32  v, >= 0
//   master        [n]  in-out  f32  p
//   weight        [n]  out     T (float, BFloat16 or Float16)  W: p, rounded once
// No two arguments may overlap, but for T = float weight may be the same memory as master.
// Units: none. Elementwise in float (factors of the whole update in double, then rounded once): bitwise repeatable,
// independent of the element's place. NaN in an input gives NaN in what depends on it.
// Max error vs f64, where g^2 does not overflow and epsilon >= 1e-12: with k = kAdamWMaxUnits * 2^-24 and
// M = |beta1 m| + |(1 - beta1) g|:  k M for m;  k v + 2^-148 for v;
// k (|p| + lr * (M / (1 - beta1^t)) / denominator) for p. Not decoupled, where both parts of g may cancel: in M and v
// |g| is G = |gradient_scale * gradient| + |weight_decay * p|, and the last term of p's error is times 1 + S, where
// S = sqrt((1 - beta2) / (1 - beta2^t)) G / denominator, as long as k S <= 1/2.
// Errors: InvalidArgument if sizes differ or an option is out of range.  Source: Loshchilov, Hutter 2019, algorithm 2.
template <typename T>
void AdamWStep(const AdamWOptions& options, std::span<const float> gradient, std::span<float> first_moment,
               std::span<float> second_moment, std::span<float> master, std::span<T> weight);

}  // namespace plumbline::kernels
