// SPDX-License-Identifier: Apache-2.0
// The exponential function and sums in float that fused kernels share. Both are branch-free additions, products and
// bit operations, so that a loop over them vectorises and a vector's lane gives what a scalar gives: results do not
// depend on where in a buffer an element lies, nor on the version of the C library.
// Source: Cephes, expf (Moshier 1989): Cody-Waite reduction and a polynomial of degree 6.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace plumbline::kernels {

// Declared maximum error of Exp, in units of 2^-24 of the result.
inline constexpr double kExpMaxUnits = 4;
// Below this Exp returns 0; the result would have been below 2^-125.
inline constexpr float kExpSmallestArgument = -87.33654f;

// e^x. Overflow gives infinity; NaN stays NaN. Max error vs f64: kExpMaxUnits, and 2^-125 absolute.
inline float Exp(float x) {
  constexpr float kLargestArgument = 88.72283f;
  constexpr float kRoundingShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  float r = x > 89.0f ? 89.0f : x;
  r = r < -88.0f ? -88.0f : r;
  const float shifted = r * 1.44269504088896341f + kRoundingShift;
  const float quotient = shifted - kRoundingShift;
  const auto n = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRoundingShift));
  r = r - quotient * 0.693359375f;
  r = r - quotient * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors: 2^128 is no float, and neither is the half of 2^-126 a normal one.
  const int32_t half = n >> 1;
  const auto power = [](int32_t exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); };
  float result = p * power(half) * power(n - half);
  result = x > kLargestArgument ? std::numeric_limits<float>::infinity() : result;
  return x < kExpSmallestArgument ? 0.0f : result;
}

inline constexpr int64_t kSumLanes = 16;

// Declared maximum error of LaneSum: at most this many roundings reach a term.
constexpr double LaneSumMaxUnits(int64_t n) { return static_cast<double>(n) / kSumLanes + 5; }

// Sum of term(i) over i in [0, n). Term i is added to lane i mod 16, and lanes in a fixed tree: the order depends on n
// alone. Max error: LaneSumMaxUnits(n) * 2^-24 * sum of |term|.
template <typename Term>
float LaneSum(int64_t n, Term term) {
  float lanes[kSumLanes] = {};
  int64_t begin = 0;
  for (; begin + kSumLanes <= n; begin += kSumLanes) {
    for (int64_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += term(begin + lane);
  }
  for (int64_t lane = 0; begin + lane < n; ++lane) lanes[lane] += term(begin + lane);
  for (int64_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// The largest of x[0 .. n), n >= 1; NaN is passed over unless it is in the first place of its lane, so that a caller
// must not rely on it to find NaN. Independent of order but for the sign of zero.
template <typename Term>
float LaneMax(int64_t n, Term term) {
  float lanes[kSumLanes];
  for (int64_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] = term(0);
  int64_t begin = 0;
  for (; begin + kSumLanes <= n; begin += kSumLanes) {
    for (int64_t lane = 0; lane < kSumLanes; ++lane) {
      const float value = term(begin + lane);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  for (int64_t i = begin; i < n; ++i) lanes[0] = term(i) > lanes[0] ? term(i) : lanes[0];
  for (int64_t lane = 1; lane < kSumLanes; ++lane) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
  return lanes[0];
}

}  // namespace plumbline::kernels
