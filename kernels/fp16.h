// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 as a storage type: 5 bits of exponent, 10 of fraction, with subnormal numbers. Conversions only;
// arithmetic is done in float. No branches, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/bf16.h"

namespace plumbline::kernels {

struct Float16 {
  uint16_t bits = 0;
};
static_assert(sizeof(Float16) == 2);

// "One rounding to T" in the declared error of a kernel is, for T = Float16: this for values of at least 2^-14, 2^-25
// absolute below, and infinity for a float of 65520 and above.
template <>
inline constexpr double kUnitRoundoff<Float16> = 0x1p-11;

// Exact. The exponent is moved into float's place by a product with a power of two, which also normalises subnormals;
// infinity and NaN get the largest exponent, NaN keeps its fraction.
inline float ToFloat(Float16 value) {
  const uint32_t magnitude = value.bits & 0x7FFFu;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  const uint32_t special = magnitude >= 0x7C00u ? 0x7F800000u : 0u;
  return std::bit_cast<float>(finite | special | (static_cast<uint32_t>(value.bits & 0x8000u) << 16));
}

// Round to nearest, ties to even. A NaN stays a NaN (its upper bits are kept and it is made quiet); from 65520 on it is
// infinity.
template <>
inline Float16 FromFloat<Float16>(float value) {
  constexpr uint32_t kRebias = 112u << 23;           // 2^-15 would be exponent 0 of binary16
  constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  constexpr uint32_t kFirstInfinite = 0x477FF000u;   // 65520, the tie between 65504 and 65536
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Adding half of the last kept place, less one where that place is even, carries exactly when rounding up is due.
  const uint32_t normal = (magnitude - kRebias + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Floats in [0.5, 1) are multiples of 2^-24, as subnormals of binary16 are: the sum rounds to one.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  uint32_t result = magnitude < kSmallestNormal ? subnormal : normal;
  result = magnitude >= kFirstInfinite ? 0x7C00u : result;
  result = magnitude > 0x7F800000u ? 0x7E00u | ((magnitude >> 13) & 0x3FFu) : result;
  return Float16{static_cast<uint16_t>(result | ((bits >> 16) & 0x8000u))};
}

}  // namespace plumbline::kernels
