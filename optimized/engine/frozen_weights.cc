// SPDX-License-Identifier: Apache-2.0
// See frozen_weights.h.
#include "optimized/engine/frozen_weights.h"

namespace plumbline::optimized {

FrozenWeights::FrozenWeights(const WeightInputs& inputs)
    : plan_(inputs.frozen),
      whole_(inputs.backend, inputs.frozen.total_elems, inputs.storage, MemoryCategory::kWeights) {
  for (const WeightSlice& slice : Held()) inputs.table[slice.parameter] = slice.values.data;
}

std::vector<WeightSlice> FrozenWeights::Held() const {
  std::vector<WeightSlice> slices;
  for (const FrozenPlace& place : plan_.places) {
    slices.push_back({place.parameter, 0, whole_.Range(place.offset, place.numel)});
  }
  return slices;
}

}  // namespace plumbline::optimized
