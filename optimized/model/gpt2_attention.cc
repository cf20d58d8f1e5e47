// SPDX-License-Identifier: Apache-2.0
// See gpt2_attention.h; the lines follow those of docs/semantics.md.
#include "optimized/model/gpt2_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/causal_softmax/causal_softmax.h"
#include "kernels/head_layout/head_layout.h"

namespace plumbline::optimized {
namespace {

kernels::HeadSizes Layout(const RealSizes& sizes, int64_t parts) {
  return {sizes.samples, sizes.spec.positions, sizes.spec.heads, sizes.spec.head_width(), parts};
}

}  // namespace

template <typename T>
Gpt2Attention<T>::Gpt2Attention(const RealSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters,
                                Backend& backend, Gpt2Scratch<T>& scratch, Arena& arena)
    : sizes_(sizes),
      backend_(backend),
      scratch_(scratch),
      norm_(sizes, parameters[0], parameters[1], arena),
      projection_(sizes.spec.width, 3 * sizes.spec.width, parameters[2], parameters[3], backend),
      output_(sizes.spec.width, sizes.spec.width, parameters[4], parameters[5], backend),
      drop_probabilities_(sizes, contract::Site::kDropoutScores, layer, DroppedTensor::kScores, arena),
      exit_(sizes, contract::Site::kDropoutAttentionOut, layer, arena),
      h_mtd_(arena.Take<T>(sizes.stream_elems())),
      heads_3mith_(arena.Take<T>(3 * sizes.stream_elems())),
      probabilities_mitt_(arena.Take<T>(sizes.scores_elems())),
      dropped_mitt_(drop_probabilities_.is_active() ? arena.Take<T>(sizes.scores_elems()) : probabilities_mitt_),
      o_mtd_(arena.Take<T>(sizes.stream_elems())) {}

template <typename T>
void Gpt2Attention<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd) {
  norm_.Forward(x_mtd, h_mtd_);
  projection_.Forward(sizes_.tokens(), h_mtd_, scratch_.product, scratch_.joined_mt3d);
  kernels::SplitHeads<T>(Layout(sizes_, 3), scratch_.joined_mt3d, heads_3mith_);

  backend_.MatMul(Heads(heads_3mith_, 0), Heads(heads_3mith_, 1).Transposed(), Scores(scratch_.float_scores_mitt),
                  WriteMode::kAssign);
  kernels::CausalSoftmaxForward<T>(sizes_.spec.positions, scale(), scratch_.float_scores_mitt, probabilities_mitt_);
  drop_probabilities_.Draw(micro_batch);
  if (drop_probabilities_.is_active()) {
    std::copy(probabilities_mitt_.begin(), probabilities_mitt_.end(), dropped_mitt_.begin());
    drop_probabilities_.Apply(dropped_mitt_);
  }
  backend_.MatMul(Scores(dropped_mitt_), Heads(heads_3mith_, 2), Heads(scratch_.heads_mith, 0), WriteMode::kAssign);
  kernels::JoinHeads<T>(Layout(sizes_, 1), scratch_.heads_mith, o_mtd_);

  const std::span<T> branch_mtd = scratch_.first_mtd;
  output_.Forward(sizes_.tokens(), o_mtd_, scratch_.product, branch_mtd);
  exit_.Forward(micro_batch, x_mtd, branch_mtd, x_out_mtd);
}

template <typename T>
void Gpt2Attention<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const std::span<T> dbranch_mtd = scratch_.first_mtd;
  exit_.Backward(dx_mtd, dbranch_mtd);
  const std::span<T> do_mtd = scratch_.second_mtd;
  output_.Backward(writes, sizes_.tokens(), o_mtd_, dbranch_mtd, do_mtd);
  kernels::SplitHeads<T>(Layout(sizes_, 1), do_mtd, scratch_.heads_mith);
  ScoresBackward();
  kernels::JoinHeads<T>(Layout(sizes_, 3), scratch_.heads_3mith, scratch_.joined_mt3d);
  const std::span<T> dh_mtd = scratch_.first_mtd;
  projection_.Backward(writes, sizes_.tokens(), h_mtd_, scratch_.joined_mt3d, dh_mtd);
  norm_.Backward(writes, dh_mtd, x_mtd, dx_mtd, dx_mtd);
}

template <typename T>
void Gpt2Attention<T>::ScoresBackward() {
  const Matrices do_heads = Heads(scratch_.heads_mith, 0);
  const std::span<float> dprobabilities = scratch_.float_scores_mitt;
  backend_.MatMul(do_heads, Heads(heads_3mith_, 2).Transposed(), Scores(dprobabilities), WriteMode::kAssign);
  backend_.MatMul(Scores(dropped_mitt_).Transposed(), do_heads, Heads(scratch_.heads_3mith, 2), WriteMode::kAssign);
  drop_probabilities_.Apply(dprobabilities);
  const std::span<T> ds_mitt = scratch_.scores_mitt;
  kernels::CausalSoftmaxBackward<T>(sizes_.spec.positions, scale(), probabilities_mitt_, dprobabilities, ds_mitt);
  backend_.MatMul(Scores(ds_mitt).Transposed(), Heads(heads_3mith_, 0), Heads(scratch_.heads_3mith, 1),
                  WriteMode::kAssign);
  backend_.MatMul(Scores(ds_mitt), Heads(heads_3mith_, 1), Heads(scratch_.heads_3mith, 0), WriteMode::kAssign);
}

template <typename T>
Matrices Gpt2Attention<T>::Heads(std::span<T> heads_3mith, int64_t part) const {
  return Dense(heads_3mith.subspan(part * sizes_.stream_elems(), sizes_.stream_elems()), sizes_.spec.positions,
               sizes_.spec.head_width(), sizes_.samples * sizes_.spec.heads);
}

template <typename T>
template <typename U>
Matrices Gpt2Attention<T>::Scores(std::span<U> scores_mitt) const {
  return Dense(scores_mitt, sizes_.spec.positions, sizes_.spec.positions, sizes_.samples * sizes_.spec.heads);
}

template <typename T>
float Gpt2Attention<T>::scale() const {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(sizes_.spec.head_width())));
}

template class Gpt2Attention<float>;
template class Gpt2Attention<kernels::BFloat16>;
template class Gpt2Attention<kernels::Float16>;

}  // namespace plumbline::optimized
