// SPDX-License-Identifier: Apache-2.0
// See dropout.h. Elements are numbered in the tensor of the global batch, whose samples follow each other and have all
// positions, however many of them are computed.
#include "optimized/model/dropout.h"

#include "kernels/dropout/dropout.h"
#include "optimized/model/dropout_mask.h"

namespace plumbline::optimized {

Dropout::Dropout(const RealSizes& sizes, contract::Site site, int64_t layer, DroppedTensor tensor, Arena& arena)
    : sizes_(sizes),
      site_(site),
      layer_(layer),
      tensor_(tensor),
      elems_per_sample_((tensor == DroppedTensor::kStream ? sizes.stream_elems() : sizes.scores_elems()) /
                        sizes.samples) {
  if (is_active()) keep_ = arena.Take<uint8_t>(elems_per_sample_ * sizes.samples);
}

void Dropout::Draw(const MicroBatch& micro_batch) {
  if (!is_active()) return;
  const int64_t all = sizes_.spec.positions, computed = sizes_.positions;
  if (computed == all) return DrawPart(micro_batch, 0, keep_);
  // What is computed of a sample, or of a query's row, lies apart from the next.
  const bool is_stream = tensor_ == DroppedTensor::kStream;
  const int64_t num_matrices = sizes_.samples * (is_stream ? 1 : sizes_.spec.heads);
  const int64_t num_runs = is_stream ? 1 : computed;
  const int64_t row_elems = is_stream ? sizes_.spec.width : all;
  const int64_t run_elems = is_stream ? computed * row_elems : computed;
  std::span<uint8_t> rest = keep_;
  for (int64_t matrix = 0; matrix < num_matrices; ++matrix) {
    for (int64_t run = 0; run < num_runs; ++run) {
      DrawPart(micro_batch, (matrix * all + run) * row_elems, rest.first(run_elems));
      rest = rest.subspan(run_elems);
    }
  }
}

// offset: of the part from the first sample of the micro-batch on.
void Dropout::DrawPart(const MicroBatch& micro_batch, int64_t offset, std::span<uint8_t> keep) const {
  FillDropoutMask(sizes_.seed, site_, micro_batch.step, layer_, micro_batch.first_sample * elems_per_sample_ + offset,
                  DropThreshold(sizes_.spec.dropout), keep);
}

template <typename U>
void Dropout::Apply(std::span<U> x) const {
  if (!is_active()) return;
  kernels::DropoutApply<U>(x, keep_.first(x.size()), static_cast<float>(1 / (1 - sizes_.spec.dropout)), x);
}

template void Dropout::Apply(std::span<float>) const;
template void Dropout::Apply(std::span<kernels::BFloat16>) const;
template void Dropout::Apply(std::span<kernels::Float16>) const;

}  // namespace plumbline::optimized
