// SPDX-License-Identifier: Apache-2.0
// See dropout_mask.h. It spells out the counter of contract::Draw in order to use all four words of a block.
#include "optimized/model/dropout_mask.h"

#include <array>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {

uint64_t DropThreshold(double rate) {
  if (!(rate >= 0 && rate < 1)) {
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "dropout is " + std::to_string(rate) + "; allowed: at least 0 and below 1");
  }
  return static_cast<uint64_t>(rate * 4294967296.0);
}

void FillDropoutMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t first_element,
                     uint64_t threshold, std::span<uint8_t> keep) {
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
      keep[element - begin] = words[lane] >= threshold ? 1 : 0;
    }
  }
}

}  // namespace plumbline::optimized
