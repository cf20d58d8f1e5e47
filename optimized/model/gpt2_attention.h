// SPDX-License-Identifier: Apache-2.0
// The attention of a gpt2 layer with its norm and residual join, forward and backward. Query, key and value come from
// one projection; in head-major layout each is a batch of m * i matrices [t, h], so that scores, mixing and their
// gradients are batched products. Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/dropout.h"
#include "optimized/model/gpt2_layer.h"
#include "optimized/model/linear.h"
#include "optimized/model/norm.h"
#include "optimized/model/residual_exit.h"

namespace plumbline::optimized {

template <typename T>
class Gpt2Attention {
 public:
  // parameters: norm weight and bias, projection weight and bias, output weight and bias.
  Gpt2Attention(const RealSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters, Backend& backend,
                Gpt2Scratch<T>& scratch, Arena& arena);

  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd);

  // dx: in the gradient of the stream after the join, out that of the stream before the norm, x.
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  // From the gradient of the mixed heads, in scratch.heads_mith, that of query, key and value into scratch.heads_3mith.
  void ScoresBackward();

  // 0 query, 1 key, 2 value.
  Matrices Heads(std::span<T> heads_3mith, int64_t part) const;
  template <typename U>
  Matrices Scores(std::span<U> scores_mitt) const;
  float scale() const;

  const RealSizes& sizes_;
  Backend& backend_;
  Gpt2Scratch<T>& scratch_;
  Norm<T> norm_;
  Linear<T> projection_, output_;
  Dropout drop_probabilities_;
  ResidualExit<T> exit_;
  std::span<T> h_mtd_, heads_3mith_, probabilities_mitt_, dropped_mitt_, o_mtd_;
};

}  // namespace plumbline::optimized
