// SPDX-License-Identifier: Apache-2.0
// Token embedding plus learned position, forward and backward. The tied head's share of the embedding's gradient is a
// matrix product and not made here. Source: docs/exact-family.md, "Forward" and "Backward".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error of the operations on their domain: they are exact.
inline constexpr double kEmbeddingMaxError = 0;

struct EmbeddingSizes {
  int64_t tokens = 0;     // a multiple of positions; token i stands at position i mod positions
  int64_t positions = 0;  // >= 1
  int64_t width = 0;      // >= 1
  int64_t vocab = 0;      // >= 1
};

// EmbeddingForward: x[i] = embed[token[i]] + pos[i mod positions].
//   token [tokens]            in   i32  in [0, vocab)
//   embed [vocab, width]      in   T (float or BFloat16)
//   pos   [positions, width]  in   T
//   x     [tokens, width]     out  T    aliases nothing
// Units: none. Bitwise repeatable.
// Max error vs f64: kEmbeddingMaxError where the sum is an integer of at most 2^24 (float) or 2^8 (BFloat16).
// Errors: InvalidArgument if a size does not match or a token is outside the vocabulary.
// Source: docs/exact-family.md, "Forward".
template <typename T>
void EmbeddingForward(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> embed,
                      std::span<const T> pos, std::span<T> x);

// PositionBackward: dpos[p] += sum over tokens i at position p of dx[i].
//   dx   [tokens, width]     in      T (float or BFloat16)
//   dpos [positions, width]  in-out  f32  aliases nothing
// Units: none. Adds in the order of tokens, in float: bitwise repeatable.
// Max error vs f64: kEmbeddingMaxError where every sum of absolute terms is an integer below 2^24.
// Errors: InvalidArgument if a size does not match.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void PositionBackward(const EmbeddingSizes& sizes, std::span<const T> dx, std::span<float> dpos);

// EmbeddingBackward: dembed[token[i]] += dx[i] for each token i.
//   token  [tokens]         in      i32  in [0, vocab)
//   dx     [tokens, width]  in      T (float or BFloat16)
//   dembed [vocab, width]   in-out  f32  aliases nothing
// Units: none. Adds in the order of tokens, in float: bitwise repeatable.
// Max error vs f64: kEmbeddingMaxError where every sum of absolute terms is an integer below 2^24.
// Errors: InvalidArgument if a size does not match or a token is outside the vocabulary.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void EmbeddingBackward(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> dx,
                       std::span<float> dembed);

}  // namespace plumbline::kernels
