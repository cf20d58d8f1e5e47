// SPDX-License-Identifier: Apache-2.0
// Implementation of dropout_masks.h: one draw an element, since clarity matters more here than a quarter of the Philox
// calls.
#include "conformance/engines/torch_eager/dropout_masks.h"

namespace plumbline::conformance::torch_eager {

std::vector<float> TwiceKeepMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t num_elems) {
  std::vector<float> twice_mask;
  twice_mask.reserve(num_elems);
  for (int64_t element = 0; element < num_elems; ++element) {
    twice_mask.push_back(contract::KeepBit(contract::Draw(seed, site, step, layer, element)) ? 2.0f : 0.0f);
  }
  return twice_mask;
}

std::vector<float> KeepMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, uint32_t threshold,
                            int64_t first, int64_t num_elems) {
  std::vector<float> mask;
  mask.reserve(num_elems);
  for (int64_t element = first; element < first + num_elems; ++element) {
    mask.push_back(contract::Draw(seed, site, step, layer, element) >= threshold ? 1.0f : 0.0f);
  }
  return mask;
}

}  // namespace plumbline::conformance::torch_eager
