// SPDX-License-Identifier: Apache-2.0
// See dropout.h. Elements are numbered in the tensor of the global batch, whose samples follow each other.
#include "optimized/model/dropout.h"

#include "kernels/dropout/dropout.h"
#include "optimized/model/dropout_mask.h"

namespace plumbline::optimized {

Dropout::Dropout(const Gpt2Sizes& sizes, contract::Site site, int64_t layer, int64_t elems, Arena& arena)
    : sizes_(sizes), site_(site), layer_(layer), elems_per_sample_(elems / sizes.samples) {
  if (is_active()) keep_ = arena.Take<uint8_t>(elems);
}

void Dropout::Draw(const MicroBatch& micro_batch) {
  if (!is_active()) return;
  FillDropoutMask(sizes_.seed, site_, micro_batch.step, layer_, micro_batch.first_sample * elems_per_sample_,
                  DropThreshold(sizes_.spec.dropout), keep_);
}

template <typename U>
void Dropout::Apply(std::span<U> x) const {
  if (!is_active()) return;
  kernels::DropoutApply<U>(x, keep_, static_cast<float>(1 / (1 - sizes_.spec.dropout)), x);
}

template void Dropout::Apply(std::span<float>) const;
template void Dropout::Apply(std::span<kernels::BFloat16>) const;

}  // namespace plumbline::optimized
