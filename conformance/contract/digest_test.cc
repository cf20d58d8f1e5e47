// SPDX-License-Identifier: Apache-2.0
// Digests against their formulas in 128-bit arithmetic, and the property that they exist for: slices add up, and one
// wrong unit or two swapped values show.
#include "conformance/contract/digest.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "conformance/contract/random_stream.h"

namespace plumbline::contract {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::vector<int64_t> Values(int64_t count, int64_t bound) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(Below(Draw(7, Site{9}, 0, 0, i), 2 * bound + 1) - bound);
  return values;
}

Digest DigestOf(const std::vector<int64_t>& values, int64_t begin, int64_t end) {
  Digest digest;
  for (int64_t i = begin; i < end; ++i) digest.Add(i, values[static_cast<size_t>(i)]);
  return digest;
}

Digest DigestOf(const std::vector<int64_t>& values) { return DigestOf(values, 0, static_cast<int64_t>(values.size())); }

// The mathematical mod of a 128-bit integer.
uint64_t Mod(__int128 value, __int128 modulus) {
  const __int128 rest = value % modulus;
  return static_cast<uint64_t>(rest < 0 ? rest + modulus : rest);
}

TEST(Mix, IsTheFinalizerOfSplitMix64) {
  // The first outputs of SplitMix64 from seed 0 and of the next state.
  EXPECT_EQ(Mix(0x9E3779B97F4A7C15ull), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(Mix(2 * 0x9E3779B97F4A7C15ull), 0x6E789E6AA1B965F4ull);
  EXPECT_EQ(Mix(3 * 0x9E3779B97F4A7C15ull), 0x06C45D188009454Full);
  EXPECT_EQ(Mix(0), 0u);
}

TEST(Digest, OfNothingIsZero) { EXPECT_EQ(DigestOf({}), Digest{}); }

TEST(Digest, FollowsTheFormulasInWiderArithmetic) {
  const std::vector<int64_t> values = Values(1009, 1'000'000);
  unsigned __int128 hash = 0;
  __int128 sum = 0, sum_squares = 0, sum_indexed = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const __int128 v = values[i];
    const uint64_t bits = static_cast<uint64_t>(Mod(v, static_cast<__int128>(1) << 64));
    hash += Mix(Mix(static_cast<uint64_t>(i) + 0x9E3779B97F4A7C15ull) + bits);
    sum += v;
    sum_squares += v * v;
    sum_indexed += (static_cast<__int128>(i) + 1) * v;
  }
  const Digest digest = DigestOf(values);
  EXPECT_EQ(digest.hash, static_cast<uint64_t>(hash));
  EXPECT_EQ(digest.sum, static_cast<int64_t>(sum));
  EXPECT_EQ(digest.sum_squares, static_cast<int64_t>(sum_squares));
  EXPECT_EQ(digest.sum_indexed, Mod(sum_indexed, static_cast<__int128>(1) << 61));
}

TEST(Digest, IndexedSumIsTheMathematicalModForNegativeAndHugeProducts) {
  const struct {
    int64_t index, value;
  } kElements[] = {{0, -1},
                   {0, kMin},
                   {0, kMax},
                   {kMax - 1, kMin},
                   {kMax - 1, kMax},
                   {kMax - 1, -1},
                   {(int64_t{1} << 40) - 1, -(int64_t{1} << 24)},
                   {(int64_t{1} << 61) - 2, 1},
                   {(int64_t{1} << 61) - 1, 1}};
  for (const auto& [index, value] : kElements) {
    Digest digest;
    digest.Add(index, value);
    const __int128 product = (static_cast<__int128>(index) + 1) * value;
    EXPECT_EQ(digest.sum_indexed, Mod(product, static_cast<__int128>(1) << 61)) << index << " " << value;
  }
}

TEST(Digest, WrapsInsteadOfOverflowingAtTheEndsOfInt64) {
  for (int64_t value : {kMin, kMax}) {
    Digest digest;
    for (int64_t index : {int64_t{0}, int64_t{1}, int64_t{2}, kMax}) digest.Add(index, value);
    // As two's complement numbers, 64 bits: 4v and 4v².
    const auto bits = static_cast<uint64_t>(value);
    EXPECT_EQ(static_cast<uint64_t>(digest.sum), 4 * bits);
    EXPECT_EQ(static_cast<uint64_t>(digest.sum_squares), 4 * bits * bits);
    Digest doubled = digest;
    doubled += digest;
    EXPECT_EQ(static_cast<uint64_t>(doubled.sum), 8 * bits);
    EXPECT_EQ(static_cast<uint64_t>(doubled.sum_squares), 8 * bits * bits);
  }
}

TEST(Digest, OfSlicesAddsUpToTheWholeInEverySplitAndOrder) {
  const std::vector<int64_t> values = Values(37, 100);
  const Digest whole = DigestOf(values);
  for (int64_t first = 0; first <= 37; ++first) {
    for (int64_t second = first; second <= 37; ++second) {
      Digest sum = DigestOf(values, second, 37);
      sum += DigestOf(values, 0, first);
      sum += DigestOf(values, first, second);
      ASSERT_EQ(sum, whole) << first << " " << second;
    }
  }
}

TEST(Digest, ShowsOneUnitMoreOrLessAnywhereInEveryField) {
  std::vector<int64_t> values = Values(101, 3);
  const Digest whole = DigestOf(values);
  for (size_t i = 0; i < values.size(); ++i) {
    for (int64_t delta : {-1, 1}) {
      values[i] += delta;
      const Digest changed = DigestOf(values);
      EXPECT_NE(changed.hash, whole.hash) << i;
      EXPECT_EQ(changed.sum - whole.sum, delta) << i;
      EXPECT_EQ((changed.sum_indexed - whole.sum_indexed) & (kIndexedModulus - 1),
                static_cast<uint64_t>(delta * (static_cast<int64_t>(i) + 1)) & (kIndexedModulus - 1));
      values[i] -= delta;
    }
  }
}

TEST(Digest, ShowsTwoSwappedValuesThatPlainSumsMiss) {
  std::vector<int64_t> values = Values(41, 3);
  const Digest whole = DigestOf(values);
  int num_swaps = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      if (values[i] == values[j]) continue;
      std::swap(values[i], values[j]);
      const Digest changed = DigestOf(values);
      EXPECT_EQ(changed.sum, whole.sum);
      EXPECT_EQ(changed.sum_squares, whole.sum_squares);
      EXPECT_NE(changed.hash, whole.hash) << i << " " << j;
      EXPECT_NE(changed.sum_indexed, whole.sum_indexed) << i << " " << j;
      std::swap(values[i], values[j]);
      ++num_swaps;
    }
  }
  EXPECT_GT(num_swaps, 400);
}

TEST(Digest, TellsZerosAtDifferentPlacesApart) {
  Digest first, second;
  first.Add(0, 0);
  second.Add(1, 0);
  EXPECT_NE(first.hash, second.hash);
  EXPECT_NE(first.hash, Digest{}.hash);
}

}  // namespace
}  // namespace plumbline::contract
