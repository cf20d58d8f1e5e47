// SPDX-License-Identifier: Apache-2.0
// The SGD update with momentum, in its plain and in Nesterov's form, on a slice: momentum, master weight and working
// weight in one pass. It sees elements, not tensors: a slice may begin anywhere. Source: PyTorch's SGD;
// docs/semantics.md, "One step".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error in units of 2^-24 of what the operation names.
inline constexpr double kSgdMaxUnits = 8;

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;    // >= 0
  bool nesterov = false;  // with momentum only
  double weight_decay = 0;
  int64_t t = 1;              // number of this update, from 1
  double gradient_scale = 1;  // of clipping; multiplies every gradient
};

// SgdStep: g = gradient_scale * gradient + weight_decay * p;  with momentum > 0: b <- g if t = 1, else momentum * b +
// g, and p <- p - lr * b, or with nesterov p <- p - lr * (g + momentum * b);  without: p <- p - lr * g;  W = p.
//   gradient [n]  in      f32
//   buffer   [n]  in-out  f32  b; not read where t = 1. Empty if momentum = 0
//   master   [n]  in-out  f32  p
//   weight   [n]  out     T (float, BFloat16 or Float16)  W: p, rounded once
// No two arguments may overlap, but for T = float weight may be the same memory as master.
// Units: none. Elementwise in float (options rounded once): bitwise repeatable, independent of the element's place. NaN
// in an input gives NaN in what depends on it. Max error vs f64, with k = kSgdMaxUnits * 2^-24 and
// G = |gradient_scale * gradient| + |weight_decay * p| + |momentum * b|:  k G for b;  k (|p| + lr G) for p, with
// nesterov k (|p| + lr (1 + momentum) G). Errors: InvalidArgument if sizes differ, momentum < 0, t < 1, or nesterov
// without momentum.  Source: Sutskever et al. 2013, as PyTorch has it; docs/semantics.md, "One step".
template <typename T>
void SgdStep(const SgdOptions& options, std::span<const float> gradient, std::span<float> buffer,
             std::span<float> master, std::span<T> weight);

}  // namespace plumbline::kernels
