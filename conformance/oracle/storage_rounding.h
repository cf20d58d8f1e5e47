// SPDX-License-Identifier: Apache-2.0
// The rounding between a master weight and the working weight that is stored of it. The oracle's own: engines have
// theirs.
#pragma once

#include <bit>
#include <cstdint>

#include "conformance/contract/dtype.h"

namespace plumbline::conformance {

// Nearest, ties to even, to what working weights are stored in. The master weight is a float unless storage is kF64.
inline double RoundToStorage(double master, contract::DType storage) {
  if (storage != contract::DType::kBF16) return master;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(master));
  if ((bits & 0x7F800000u) == 0x7F800000u) return master;  // NaN and Inf
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1)) & 0xFFFF0000u;
  return std::bit_cast<float>(rounded);
}

// The largest relative error of that rounding: half an ulp.
inline double HalfUlp(contract::DType storage) { return storage == contract::DType::kBF16 ? 0x1p-9 : 0x1p-24; }

}  // namespace plumbline::conformance
