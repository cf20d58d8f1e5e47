// SPDX-License-Identifier: Apache-2.0
// Random draws as a function of logical coordinates (seed, site, step, layer, element), never of a rank, so every
// layout sees the same data and masks. Philox4x32-10 (Salmon et al., SC 2011); counter layout in docs/exact-family.md.
#pragma once

#include <array>
#include <cstdint>

namespace plumbline::contract {

std::array<uint32_t, 4> Philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

enum class Site : uint32_t {
  kSampleStart = 0,
  kPositionRank = 1,
  kLossWeight = 2,
  kInitialWeight = 3,
  kInitialMaster = 4,
  kDropoutAttention = 5,
  kDropoutMlp = 6,
  // The real families (docs/semantics.md).
  kDropoutEmbedding = 16,
  kDropoutScores = 17,
  kDropoutAttentionOut = 18,
  kDropoutMlpOut = 19,
  kNormalFirst = 20,
  kNormalSecond = 21,
  kRealLossWeight = 22,
  kLength = 23,
};

// layer < 2^24, step < 2^32, element >= 0.
uint32_t Draw(uint64_t seed, Site site, int64_t step, int64_t layer, int64_t element);

// floor(word * n / 2^32), for 1 <= n <= 2^32: an integer in [0, n).
inline int64_t Below(uint32_t word, int64_t n) {
  return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(n)) >> 32);
}

// Dropout of rate 1/2: true where the element is kept.
inline bool KeepBit(uint32_t word) { return (word >> 31) != 0; }

// floor(p * 2^32) for 0 <= p < 1: with dropout of probability p an element is kept where its word is at least this.
inline uint32_t DropThreshold(double p) { return static_cast<uint32_t>(p * 4294967296.0); }

}  // namespace plumbline::contract
