// SPDX-License-Identifier: Apache-2.0
// See llama_attention.h; the lines follow those of docs/semantics.md. Of every buffer the first part is used, as much
// as the micro-batch has positions.
#include "optimized/model/llama_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/causal_softmax/causal_softmax.h"
#include "kernels/head_layout/head_layout.h"

namespace plumbline::optimized {

template <typename T>
LlamaAttention<T>::LlamaAttention(const LlamaSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters,
                                  const LlamaAngles& angles, Backend& backend, LlamaScratch<T>& scratch, Arena& arena)
    : sizes_(sizes),
      angles_(angles),
      backend_(backend),
      scratch_(scratch),
      norm_(sizes, parameters[0], arena),
      query_(sizes.spec.width, sizes.spec.width, parameters[1], backend),
      key_(sizes.spec.width, sizes.kv_width(), parameters[2], backend),
      value_(sizes.spec.width, sizes.kv_width(), parameters[3], backend),
      output_(sizes.spec.width, sizes.spec.width, parameters[4], backend),
      drop_probabilities_(sizes, contract::Site::kDropoutScores, layer, DroppedTensor::kScores, arena),
      exit_(sizes, contract::Site::kDropoutAttentionOut, layer, arena),
      h_mtd_(arena.Take<T>(sizes.stream_elems())),
      q_mith_(arena.Take<T>(sizes.stream_elems())),
      k_mjth_(arena.Take<T>(sizes.kv_elems())),
      v_mjth_(arena.Take<T>(sizes.kv_elems())),
      probabilities_mitt_(arena.Take<T>(sizes.scores_elems())),
      dropped_mitt_(drop_probabilities_.is_active() ? arena.Take<T>(sizes.scores_elems()) : probabilities_mitt_),
      o_mtd_(arena.Take<T>(sizes.stream_elems())) {}

template <typename T>
void LlamaAttention<T>::Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd) {
  norm_.Forward(x_mtd, h_mtd_.first(sizes_.stream_elems()));
  ToHeads(query_, sizes_.spec.heads, Turn::kPositions, scratch_.joined_mtd, q_mith_);
  ToHeads(key_, sizes_.kv_heads, Turn::kPositions, scratch_.joined_mte, k_mjth_);
  ToHeads(value_, sizes_.kv_heads, Turn::kNone, scratch_.joined_mte, v_mjth_);
  Mix(micro_batch);
  kernels::JoinHeads<T>({sizes_.samples, sizes_.positions, sizes_.spec.heads, sizes_.spec.head_width()},
                        scratch_.heads_mith.first(sizes_.stream_elems()), o_mtd_.first(sizes_.stream_elems()));
  const std::span<T> branch_mtd = scratch_.branch_mtd.first(sizes_.stream_elems());
  output_.Forward(sizes_.tokens(), o_mtd_, branch_mtd);
  exit_.Forward(micro_batch, x_mtd, branch_mtd, x_out_mtd);
}

template <typename T>
void LlamaAttention<T>::Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd) {
  const std::span<T> dbranch_mtd = scratch_.branch_mtd.first(sizes_.stream_elems());
  exit_.Backward(dx_mtd, dbranch_mtd);
  const std::span<T> do_mtd = scratch_.joined_mtd.first(sizes_.stream_elems());
  output_.Backward(writes, sizes_.tokens(), o_mtd_, dbranch_mtd, do_mtd, WriteMode::kAssign);
  kernels::SplitHeads<T>({sizes_.samples, sizes_.positions, sizes_.spec.heads, sizes_.spec.head_width()}, do_mtd,
                         scratch_.heads_mith.first(sizes_.stream_elems()));
  MixBackward(writes);
  const std::span<const float> dh_mtd = scratch_.sum_mtd.first(sizes_.stream_elems());
  norm_.Backward(writes, dh_mtd, x_mtd, dx_mtd, dx_mtd);
}

template <typename T>
void LlamaAttention<T>::ToHeads(const Projection<T>& projection, int64_t heads, Turn turn, std::span<T> joined,
                                std::span<T> heads_out) const {
  const int64_t positions = sizes_.positions, head_width = sizes_.spec.head_width();
  const int64_t elems = sizes_.tokens() * heads * head_width;
  projection.Forward(sizes_.tokens(), h_mtd_, joined);
  if (turn == Turn::kPositions) {
    kernels::RopeForward<T>({sizes_.samples, positions, heads, head_width}, angles_.cosine(positions),
                            angles_.sine(positions), joined.first(elems));
  }
  kernels::SplitHeads<T>({sizes_.samples, positions, heads, head_width}, joined.first(elems), heads_out.first(elems));
}

template <typename T>
void LlamaAttention<T>::FromHeads(const GradientWrites& writes, const Projection<T>& projection, int64_t heads,
                                  Turn turn, std::span<T> dheads, std::span<T> joined, WriteMode sum_mode) const {
  const int64_t positions = sizes_.positions, head_width = sizes_.spec.head_width();
  const int64_t elems = sizes_.tokens() * heads * head_width;
  kernels::JoinHeads<T>({sizes_.samples, positions, heads, head_width}, dheads.first(elems), joined.first(elems));
  if (turn == Turn::kPositions) {
    kernels::RopeBackward<T>({sizes_.samples, positions, heads, head_width}, angles_.cosine(positions),
                             angles_.sine(positions), joined.first(elems));
  }
  projection.Backward(writes, sizes_.tokens(), h_mtd_, joined, scratch_.sum_mtd, sum_mode);
}

template <typename T>
void LlamaAttention<T>::Mix(const MicroBatch& micro_batch) {
  const int64_t elems = sizes_.scores_elems();
  const std::span<T> probabilities = probabilities_mitt_.first(elems), dropped = dropped_mitt_.first(elems);
  backend_.MatMul(QueryHeads(q_mith_), KeyHeads(k_mjth_).Transposed(), Scores(scratch_.float_scores_mitt),
                  WriteMode::kAssign);
  kernels::CausalSoftmaxForward<T>(sizes_.positions, scale(), scratch_.float_scores_mitt.first(elems), probabilities);
  drop_probabilities_.Draw(micro_batch);
  if (drop_probabilities_.is_active()) {
    std::copy(probabilities.begin(), probabilities.end(), dropped.begin());
    drop_probabilities_.Apply(dropped);
  }
  backend_.MatMul(Scores(dropped), KeyHeads(v_mjth_), QueryHeads(scratch_.heads_mith), WriteMode::kAssign);
}

template <typename T>
void LlamaAttention<T>::MixBackward(const GradientWrites& writes) {
  const int64_t elems = sizes_.scores_elems();
  const Matrices do_heads = QueryHeads(scratch_.heads_mith);
  const std::span<float> dprobabilities = scratch_.float_scores_mitt.first(elems);
  backend_.MatMul(do_heads, KeyHeads(v_mjth_).Transposed(), Scores(dprobabilities), WriteMode::kAssign);
  backend_.MatMul(Scores(dropped_mitt_).Transposed(), do_heads, KeyHeads(scratch_.heads_mjth), WriteMode::kAssign);
  FromHeads(writes, value_, sizes_.kv_heads, Turn::kNone, scratch_.heads_mjth, scratch_.joined_mte, WriteMode::kAssign);

  drop_probabilities_.Apply(dprobabilities);
  const std::span<T> ds_mitt = scratch_.scores_mitt.first(elems);
  kernels::CausalSoftmaxBackward<T>(sizes_.positions, scale(), probabilities_mitt_.first(elems), dprobabilities,
                                    ds_mitt);
  backend_.MatMul(Scores(ds_mitt).Transposed(), QueryHeads(q_mith_), KeyHeads(scratch_.heads_mjth), WriteMode::kAssign);
  FromHeads(writes, key_, sizes_.kv_heads, Turn::kPositions, scratch_.heads_mjth, scratch_.joined_mte,
            WriteMode::kAccumulate);
  backend_.MatMul(Scores(ds_mitt), KeyHeads(k_mjth_), QueryHeads(scratch_.heads_mith), WriteMode::kAssign);
  FromHeads(writes, query_, sizes_.spec.heads, Turn::kPositions, scratch_.heads_mith, scratch_.joined_mtd,
            WriteMode::kAccumulate);
}

template <typename T>
Matrices LlamaAttention<T>::QueryHeads(std::span<T> heads_mith) const {
  const int64_t group = sizes_.spec.heads / sizes_.kv_heads;
  return Dense(heads_mith, group * sizes_.positions, sizes_.spec.head_width(), sizes_.samples * sizes_.kv_heads);
}

template <typename T>
Matrices LlamaAttention<T>::KeyHeads(std::span<T> heads_mjth) const {
  return Dense(heads_mjth, sizes_.positions, sizes_.spec.head_width(), sizes_.samples * sizes_.kv_heads);
}

template <typename T>
template <typename U>
Matrices LlamaAttention<T>::Scores(std::span<U> scores_mitt) const {
  const int64_t group = sizes_.spec.heads / sizes_.kv_heads;
  return Dense(scores_mitt, group * sizes_.positions, sizes_.positions, sizes_.samples * sizes_.kv_heads);
}

template <typename T>
float LlamaAttention<T>::scale() const {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(sizes_.spec.head_width())));
}

template class LlamaAttention<float>;
template class LlamaAttention<kernels::BFloat16>;
template class LlamaAttention<kernels::Float16>;

}  // namespace plumbline::optimized
