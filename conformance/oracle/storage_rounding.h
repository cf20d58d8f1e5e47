// SPDX-License-Identifier: Apache-2.0
// The rounding between a master weight and the working weight that is stored of it. The oracle's own: engines have
// theirs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "conformance/contract/dtype.h"

namespace plumbline::conformance {

// Whether roundings to storage are what an engine's errors are made of: in the 16-bit types they are, in fp32 and fp64
// those inside its sums.
inline bool IsRoundedByStorage(contract::DType storage) {
  return storage == contract::DType::kBF16 || storage == contract::DType::kF16;
}

inline double RoundToBf16(double master) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(master));
  if ((bits & 0x7F800000u) == 0x7F800000u) return master;  // NaN and Inf
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1)) & 0xFFFF0000u;
  return std::bit_cast<float>(rounded);
}

// 11 bits, down to multiples of 2^-24; from 65520 on it has no number.
inline double RoundToFp16(double master) {
  if (!std::isfinite(master) || master == 0) return master;
  if (std::abs(master) >= 65520) return std::copysign(std::numeric_limits<double>::infinity(), master);
  int exponent = 0;
  std::frexp(master, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 11, -24));
  return std::copysign(std::nearbyint(std::abs(master) / ulp) * ulp, master);  // ties to even
}

// Nearest, ties to even, with so many bits and whatever exponent.
inline double RoundToBits(double value, int num_bits) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, num_bits)), exponent - num_bits);
}

// Nearest, ties to even, to what working weights are stored in. The master weight is a float unless storage is kF64.
inline double RoundToStorage(double master, contract::DType storage) {
  if (storage == contract::DType::kBF16) return RoundToBf16(master);
  return storage == contract::DType::kF16 ? RoundToFp16(master) : master;
}

// Half an ulp, relative: in the 16-bit types to a number that is nearly the next power of two, in fp32 to a power of
// two. So an error of one rounding is this to twice this at most in the former.
inline double HalfUlp(contract::DType storage) {
  if (storage == contract::DType::kBF16) return 0x1p-9;
  return storage == contract::DType::kF16 ? 0x1p-12 : 0x1p-24;
}

}  // namespace plumbline::conformance
