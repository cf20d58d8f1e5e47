// SPDX-License-Identifier: Apache-2.0
// Digests of integer tensors in the trace (docs/exact-family.md, "Digests"). They are sums over elements, so slices
// held by different ranks add up to the digest of the whole tensor, and no engine has to gather anything to write a
// trace.
#pragma once

#include <cstdint>

namespace plumbline::contract {

inline uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

inline constexpr uint64_t kIndexedModulus = uint64_t{1} << 61;

// Modulo 2^64, so that values far outside the exact range, which a faulty engine writes, stay defined and additive.
inline int64_t WrappingSum(int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); }

struct Digest {
  uint64_t hash = 0;
  int64_t sum = 0;
  int64_t sum_squares = 0;
  uint64_t sum_indexed = 0;  // in [0, 2^61)

  // index is row-major in the whole tensor.
  void Add(int64_t index, int64_t value) {
    const auto v = static_cast<uint64_t>(value);
    const auto i = static_cast<uint64_t>(index);
    hash += Mix(Mix(i + 0x9E3779B97F4A7C15ull) + v);
    sum = WrappingSum(sum, v);
    sum_squares = WrappingSum(sum_squares, v * v);
    // 2^61 divides 2^64, so wrapping arithmetic followed by the mask is the mathematical mod.
    sum_indexed = (sum_indexed + (i + 1) * v) & (kIndexedModulus - 1);
  }

  // Real families: the hash of an element's bits, as an unsigned number of its storage type. Sums stay 0.
  void AddBits(int64_t index, uint64_t bits) {
    hash += Mix(Mix(static_cast<uint64_t>(index) + 0x9E3779B97F4A7C15ull) + bits);
  }

  Digest& operator+=(const Digest& other) {
    hash += other.hash;
    sum = WrappingSum(sum, static_cast<uint64_t>(other.sum));
    sum_squares = WrappingSum(sum_squares, static_cast<uint64_t>(other.sum_squares));
    sum_indexed = (sum_indexed + other.sum_indexed) & (kIndexedModulus - 1);
    return *this;
  }

  friend bool operator==(const Digest&, const Digest&) = default;
};

}  // namespace plumbline::contract
