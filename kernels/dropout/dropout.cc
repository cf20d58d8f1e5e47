// SPDX-License-Identifier: Apache-2.0
// CPU implementation of dropout.h.
#include "kernels/dropout/dropout.h"

#include <array>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"

namespace plumbline::kernels {

void DropoutMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t first_element,
                 std::span<uint8_t> keep) {
  Require(first_element >= 0 && step >= 0 && layer >= 0, "dropout", "coordinates must not be negative");
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const uint32_t step_word = static_cast<uint32_t>(step);
  const uint32_t site_word = static_cast<uint32_t>(layer * 256 + static_cast<int64_t>(site));
  const uint64_t begin = static_cast<uint64_t>(first_element);
  const uint64_t end = begin + keep.size();
  for (uint64_t block = begin / 4; 4 * block < end; ++block) {
    const auto words = contract::Philox4x32_10(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), step_word, site_word}, key);
    for (uint64_t lane = 0; lane < 4; ++lane) {
      const uint64_t element = 4 * block + lane;
      if (element < begin || element >= end) continue;
      keep[element - begin] = contract::KeepBit(words[lane]) ? 1 : 0;
    }
  }
}

template <typename T>
void DropoutApply(std::span<const T> x, std::span<const uint8_t> keep, std::span<T> y) {
  Require(x.size() == y.size() && keep.size() == y.size(), "dropout", "arguments must have the same size");
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = FromFloat<T>(ToFloat(x[i]) * (2.0f * static_cast<float>(keep[i])));
  }
}

template void DropoutApply(std::span<const float>, std::span<const uint8_t>, std::span<float>);
template void DropoutApply(std::span<const BFloat16>, std::span<const uint8_t>, std::span<BFloat16>);

}  // namespace plumbline::kernels
