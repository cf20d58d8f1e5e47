// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of logits against labels, value and gradient in one pass over a row. The normalisation is the caller's:
// 1 / (sum of loss weights of the global batch), not of what it holds. Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error in units of 2^-24 of what the operation names. `range` is the largest minus the smallest logit
// of the row.
constexpr double CrossEntropyMaxUnits(int64_t vocab, double range) {
  return static_cast<double>(vocab) / 16 + 16 + 3 * range;
}

// CrossEntropy: with s = weight * inverse_tokens and p = softmax(logits of the token),
//   returns sum over tokens of s * (log sum exp(logits) - logits[label]);
//   dlogits = loss_scale * s * (p - onehot(label)).
//   logits  [tokens, vocab]  in-out  f32  overwritten
//   label   [tokens]         in      i32  in [0, vocab)
//   weight  [tokens]         in      i32  loss weights u
//   dlogits [tokens, vocab]  out     T (float, BFloat16 or Float16)   for float may be the same memory as logits
// Units: inverse_tokens is one over the sum of weights. A token of weight 0 has no part in the loss, whatever its
// logits and the scale are: its dlogits are 0. A NaN or plus infinity in another row makes the loss and the row's
// dlogits NaN. loss_scale is a power of two: it makes dlogits infinite where T is too narrow, and else no other digits.
// Accumulates a row in float in an order that depends on vocab alone, and the loss in double in the order of tokens:
// bitwise repeatable, independent of the row's place.
// Max error vs f64, with k = CrossEntropyMaxUnits(vocab, range) * 2^-24: loss_scale * |s| * (k * p + 2^-24 * onehot +
// 2^-125) plus one rounding to T for dlogits; sum of |s| * k for the loss.
// Errors: InvalidArgument if a size does not match, vocab < 1 or a label is outside the vocabulary.
// Source: docs/semantics.md, "Family gpt2" (loss).
template <typename T>
double CrossEntropy(int64_t vocab, std::span<float> logits, std::span<const int32_t> label,
                    std::span<const int32_t> weight, float inverse_tokens, float loss_scale, std::span<T> dlogits);

}  // namespace plumbline::kernels
