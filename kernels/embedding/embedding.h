// SPDX-License-Identifier: Apache-2.0
// Token embedding plus learned position, forward and backward. The tied head's share of the embedding's gradient is a
// matrix product and not made here. Source: docs/exact-family.md, "Forward" and "Backward";
// docs/semantics.md, "Family gpt2" and "Family llama".
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum errors in units of 2^-24 of what each operation names. Exact where the sums of absolute terms are
// integers below 2^24 (for x in BFloat16: of at most 2^8), as in family exact.
inline constexpr double kEmbeddingMaxUnits = 1;
constexpr double EmbeddingGradientMaxUnits(int64_t num_terms) { return static_cast<double>(num_terms); }

struct EmbeddingSizes {
  int64_t tokens = 0;     // a multiple of positions; token i stands at position i mod positions
  int64_t positions = 0;  // >= 1
  int64_t width = 0;      // >= 1
  int64_t vocab = 0;      // >= 1
};

// EmbeddingForward: x[i] = embed[token[i]] + pos[i mod positions].
//   token [tokens]            in   i32  in [0, vocab)
//   embed [vocab, width]      in   T (float, BFloat16 or Float16)
//   pos   [positions, width]  in   T
//   x     [tokens, width]     out  T    aliases nothing
// Units: none. Bitwise repeatable.
// Max error vs f64: kEmbeddingMaxUnits * 2^-24 * |x|, plus one rounding to T.
// Errors: InvalidArgument if a size does not match or a token is outside the vocabulary.
// Source: docs/exact-family.md, "Forward".
template <typename T>
void EmbeddingForward(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> embed,
                      std::span<const T> pos, std::span<T> x);

// EmbeddingLookup: x[i] = embed[token[i]], where positions are not learned.
//   token [tokens]        in   i32  in [0, vocab)
//   embed [vocab, width]  in   T (float, BFloat16 or Float16)
//   x     [tokens, width] out  T    aliases nothing
// Units: none. Bitwise repeatable.  Max error: none, it copies.
// Errors: InvalidArgument if a size does not match or a token is outside the vocabulary.
// Source: docs/semantics.md, "Family llama".
template <typename T>
void EmbeddingLookup(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> embed,
                     std::span<T> x);

// PositionBackward: dpos[p] += sum over tokens i at position p of dx[i].
//   dx   [tokens, width]     in      T (float, BFloat16 or Float16)
//   dpos [positions, width]  in-out  f32  aliases nothing
// Units: none. Adds in the order of tokens, in float: bitwise repeatable.
// Max error vs f64: EmbeddingGradientMaxUnits(terms of the sum) * 2^-24 * (|what was there| + sum of |dx|).
// Errors: InvalidArgument if a size does not match.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void PositionBackward(const EmbeddingSizes& sizes, std::span<const T> dx, std::span<float> dpos);

// EmbeddingBackward: dembed[token[i]] += dx[i] for each token i.
//   token  [tokens]         in      i32  in [0, vocab)
//   dx     [tokens, width]  in      T (float, BFloat16 or Float16)
//   dembed [vocab, width]   in-out  f32  aliases nothing
// Units: none. Adds in the order of tokens, in float: bitwise repeatable.
// Max error vs f64: EmbeddingGradientMaxUnits(terms of the sum) * 2^-24 * (|what was there| + sum of |dx|).
// Errors: InvalidArgument if a size does not match or a token is outside the vocabulary.
// Source: docs/exact-family.md, "Backward".
template <typename T>
void EmbeddingBackward(const EmbeddingSizes& sizes, std::span<const int32_t> token, std::span<const T> dx,
                       std::span<float> dembed);

}  // namespace plumbline::kernels
