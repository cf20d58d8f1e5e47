// SPDX-License-Identifier: Apache-2.0
// The loss of the exact family at the head: value and gradient with respect to the logits, in one pass over them.
// The normalisation is the caller's: 1/N of the global batch, not of what it holds.
// Source: docs/exact-family.md, "Forward" (loss) and "Backward" (dlogits).
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error on the domain: exact.
inline constexpr double kHeadLossMaxError = 0;

// HeadLoss: with best the index of the largest logit (the smallest index of equal ones) and s = weight *
// inverse_tokens,
//   returns sum over tokens of s * (logit[best] - logit[label]);
//   dlogits[token] = loss_scale * s * (onehot(best) - onehot(label)).
//   logits  [tokens, vocab]  in   T (float, BFloat16 or Float16)
//   label   [tokens]         in   i32  in [0, vocab)
//   weight  [tokens]         in   i32  loss weights u
//   dlogits [tokens, vocab]  out  T    aliases nothing
// Units: none. inverse_tokens is 1/N; loss_scale is a power of two, and the loss is without it. The loss is summed in
// double in the order of tokens: bitwise repeatable. Max error vs f64: kHeadLossMaxError where N is a power of two,
// weight < 2^24, and logits and loss_scale * s are exact in T. Errors: InvalidArgument if a size does not match, vocab
// < 1 or a label is outside the vocabulary. Source: docs/exact-family.md, "Forward" and "Backward".
template <typename T>
double HeadLoss(int64_t vocab, std::span<const T> logits, std::span<const int32_t> label,
                std::span<const int32_t> weight, float inverse_tokens, float loss_scale, std::span<T> dlogits);

}  // namespace plumbline::kernels
