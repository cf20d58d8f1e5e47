// SPDX-License-Identifier: Apache-2.0
// Changes between the layout of projections (a token's heads side by side) and that of attention (a head's tokens one
// after the other), so that attention is one uniformly strided batched product over samples and key/value heads. Moves
// only. Source: docs/exact-family.md, "Forward" (heads are contiguous blocks of channels).
#pragma once

#include <cstdint>
#include <span>

namespace plumbline::kernels {

// Declared maximum error of both operations: none, they copy.
inline constexpr double kHeadLayoutMaxError = 0;

struct HeadSizes {
  int64_t samples = 0;
  int64_t positions = 0;
  int64_t heads = 0;
  int64_t head_width = 0;
  int64_t parts = 1;  // tensors side by side in a token's row: 3 for one projection to query, key and value
};

// SplitHeads: heads[p, s, i, t, c] = joined[s, t, (p * heads + i) * head_width + c].
//   joined [samples, positions, parts * heads * head_width]  in   T (float, BFloat16 or Float16)
//   heads  [parts, samples, heads, positions, head_width]    out  T   aliases nothing
// Units: elements. Bitwise repeatable.  Max error: kHeadLayoutMaxError.
// Errors: InvalidArgument if a size is negative or does not match.
// Source: docs/exact-family.md, "Forward".
template <typename T>
void SplitHeads(const HeadSizes& sizes, std::span<const T> joined, std::span<T> heads);

// JoinHeads: the inverse of SplitHeads; same shapes, dtypes, aliasing, units, determinism, error, errors and source.
template <typename T>
void JoinHeads(const HeadSizes& sizes, std::span<const T> heads, std::span<T> joined);

}  // namespace plumbline::kernels
