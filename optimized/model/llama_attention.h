// SPDX-License-Identifier: Apache-2.0
// The attention of a llama layer with its norm and residual join, forward and backward. The i / j query heads that
// share a key/value head follow each other in head-major layout, [m, i, t, h]: seen as m * j matrices [(i / j) t, h]
// they meet keys and values [t, h] in one product each, and neither is ever copied for its query heads. The products of
// the backward sum over the heads of a group by themselves. Source: docs/semantics.md, "Family llama"; Ainslie et al.
// 2023.
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/dropout.h"
#include "optimized/model/llama_layer.h"
#include "optimized/model/projection.h"
#include "optimized/model/residual_exit.h"
#include "optimized/model/rms_norm.h"

namespace plumbline::optimized {

template <typename T>
class LlamaAttention {
 public:
  // parameters: norm weight, query, key, value, output.
  LlamaAttention(const LlamaSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters,
                 const LlamaAngles& angles, Backend& backend, LlamaScratch<T>& scratch, Arena& arena);

  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd);

  // dx: in the gradient of the stream after the join, out that of the stream before the norm, x.
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  enum class Turn { kNone, kPositions };

  // From the norm's output to heads [m, heads, t, h], by way of `joined`.
  void ToHeads(const Projection<T>& projection, int64_t heads, Turn turn, std::span<T> joined,
               std::span<T> heads_out) const;

  // From the gradient of heads, by way of `joined`, that of the weight and the projection's share of that of the norm's
  // output, in scratch.sum_mtd.
  void FromHeads(const GradientWrites& writes, const Projection<T>& projection, int64_t heads, Turn turn,
                 std::span<T> dheads, std::span<T> joined, WriteMode sum_mode) const;

  // Softmax, dropout and mixing: from query, key and value to scratch.heads_mith.
  void Mix(const MicroBatch& micro_batch);

  // From the gradient of the mixed heads, in scratch.heads_mith, those of value, key and query, in this order.
  void MixBackward(const GradientWrites& writes);

  // [(i / j) t, h], [t, h] and [(i / j) t, t], each m * j times.
  Matrices QueryHeads(std::span<T> heads_mith) const;
  Matrices KeyHeads(std::span<T> heads_mjth) const;
  template <typename U>
  Matrices Scores(std::span<U> scores_mitt) const;
  float scale() const;

  const LlamaSizes& sizes_;
  const LlamaAngles& angles_;
  Backend& backend_;
  LlamaScratch<T>& scratch_;
  RmsNorm<T> norm_;
  Projection<T> query_, key_, value_, output_;
  Dropout drop_probabilities_;
  ResidualExit<T> exit_;
  std::span<T> h_mtd_, q_mith_, k_mjth_, v_mjth_, probabilities_mitt_, dropped_mitt_, o_mtd_;
};

}  // namespace plumbline::optimized
