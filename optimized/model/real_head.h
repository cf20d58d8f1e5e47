// SPDX-License-Identifier: Apache-2.0
// The head of the real families: last norm, logits by a matrix, loss, and the backward into the residual stream. The
// matrix is one of its own, or the embedding's: a tied one's gradient is not ready after it, for the gather at the
// other end adds its share. Source: docs/semantics.md, "Family gpt2" and "Family llama".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/arena.h"
#include "optimized/model/real_layer.h"

namespace plumbline::optimized {

// RowNorm is the family's norm: Norm or RmsNorm.
template <typename T, template <typename> class RowNorm>
class RealHead {
 public:
  RealHead(const RealSizes& sizes, const RowNorm<T>& norm, const Parameter<T>& matrix_vd, bool is_tied,
           Backend& backend, Arena& arena);

  void Forward(std::span<const T> x_mtd);

  // Returns this micro-batch's share of the loss and keeps the gradient of the logits, loss_scale times that of the
  // loss. Once after each Forward.
  double Loss(const MicroBatch& micro_batch, float inverse_tokens, float loss_scale);

  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  const RealSizes& sizes_;
  RowNorm<T> norm_;
  Parameter<T> matrix_vd_;
  bool is_tied_;
  Backend& backend_;
  std::span<T> h_mtd_, dh_mtd_;
  std::span<float> logits_mtv_;
  std::span<T> dlogits_mtv_;  // in fp32 the same memory as the logits
};

}  // namespace plumbline::optimized
