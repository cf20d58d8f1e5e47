// SPDX-License-Identifier: Apache-2.0
// The causal softmax of attention scores, forward and backward, with their scale. Scores are square matrices [queries,
// keys], one after the other; query a sees keys 0 to a. Source: Vaswani et al. 2017, eq. 1; docs/semantics.md.
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum errors in units of 2^-24 of what each operation names. `range` is the largest |scale * score| that
// the row's query sees: an error of the exponent is one of the exponential relative to it.
constexpr double CausalSoftmaxMaxUnits(int64_t positions, double range) {
  return static_cast<double>(positions) / 16 + 16 + 6 * range;
}
constexpr double CausalSoftmaxBackwardMaxUnits(int64_t positions) { return static_cast<double>(positions) / 8 + 18; }

// CausalSoftmaxForward: p[a, b] = exp(scale * s[a, b]) / sum over c <= a of exp(scale * s[a, c]) for b <= a, else 0.
//   scores        [matrices, positions, positions]  in-out  f32  overwritten; b > a is not read
//   probabilities [matrices, positions, positions]  out     T (float, BFloat16 or Float16)
// For float both may be the same memory.
// Units: none. Accumulates in float in an order that depends on a alone: bitwise repeatable, independent of the
// matrix's place. A NaN or plus infinity among what a query sees makes its seen probabilities NaN, as does a row of
// minus infinity only; otherwise minus infinity gives 0.
// Max error vs f64: CausalSoftmaxMaxUnits(positions, range) * 2^-24 * p + 2^-125, plus one rounding to T.
// Errors: InvalidArgument if sizes differ, are no multiple of positions^2, or positions < 1.
// Source: docs/semantics.md, "Family gpt2".
template <typename T>
void CausalSoftmaxForward(int64_t positions, float scale, std::span<float> scores, std::span<T> probabilities);

// CausalSoftmaxBackward: ds[a, b] = scale * p[a, b] * (dp[a, b] - sum over c <= a of p[a, c] dp[a, c] / sum over c <= a
// of p[a, c]) for b <= a, else 0. Stored probabilities miss a sum of 1 by their rounding; without the division that
// times the part that all dp of a row share (which has no effect on a softmax) would stay, and in bf16 it may be larger
// than the gradient.
//   probabilities  [matrices, positions, positions]  in   T (float, BFloat16 or Float16)
//   dprobabilities [matrices, positions, positions]  in   f32   b > a is not read
//   dscores        [matrices, positions, positions]  out  T     for float may be the same memory as dprobabilities
// Units: those of dprobabilities. Accumulates in float in an order that depends on a alone: bitwise repeatable.
// Max error vs f64: CausalSoftmaxBackwardMaxUnits(positions) * 2^-24 * |scale| * p * (|dp| + sum of p |dp|), plus one
// rounding to T.
// Errors: InvalidArgument if sizes differ, are no multiple of positions^2, or positions < 1.
// Source: derivative of the forward.
template <typename T>
void CausalSoftmaxBackward(int64_t positions, float scale, std::span<const T> probabilities,
                           std::span<const float> dprobabilities, std::span<T> dscores);

}  // namespace plumbline::kernels
