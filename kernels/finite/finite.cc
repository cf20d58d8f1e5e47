// SPDX-License-Identifier: Apache-2.0
// CPU implementation of finite.h. It does not stop at the first find: the whole loop vectorises.
#include "kernels/finite/finite.h"

#include <bit>
#include <cstdint>

#include "kernels/bf16.h"

namespace plumbline::kernels {

template <typename T>
bool AllFinite(std::span<const T> x) {
  constexpr uint32_t kExponent = 0x7F800000u;
  uint32_t num_others = 0;
  for (const T value : x) num_others |= (std::bit_cast<uint32_t>(ToFloat(value)) & kExponent) == kExponent ? 1u : 0u;
  return num_others == 0;
}

template bool AllFinite(std::span<const float>);
template bool AllFinite(std::span<const BFloat16>);

}  // namespace plumbline::kernels
