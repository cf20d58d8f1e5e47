// SPDX-License-Identifier: Apache-2.0
// bfloat16 as a storage type: 16 bits, the upper half of an IEEE binary32. Conversions only; arithmetic is done in
// float. ToFloat and FromFloat let a kernel be written once for float and BFloat16.
#pragma once

#include <bit>
#include <cstdint>

namespace plumbline::kernels {

struct BFloat16 {
  uint16_t bits = 0;
};
static_assert(sizeof(BFloat16) == 2);

// The largest relative change by one rounding to nearest in T, for values in T's normal range.
template <typename T>
inline constexpr double kUnitRoundoff = 0x1p-24;
template <>
inline constexpr double kUnitRoundoff<BFloat16> = 0x1p-8;

inline float ToFloat(float value) { return value; }
inline float ToFloat(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// Round to nearest, ties to even. A NaN stays a NaN (its upper bits are kept and it is made quiet); overflow gives
// infinity.
template <typename T>
T FromFloat(float value);

template <>
inline float FromFloat<float>(float value) {
  return value;
}

template <>
inline BFloat16 FromFloat<BFloat16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // Adding half of the last kept place, less one where that place is even, carries exactly when rounding up is due.
  const uint32_t rounded = bits + 0x7FFFu + ((bits >> 16) & 1u);
  const uint32_t quiet_nan = bits | 0x00400000u;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return BFloat16{static_cast<uint16_t>((is_nan ? quiet_nan : rounded) >> 16)};
}

}  // namespace plumbline::kernels
