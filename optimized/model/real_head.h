// SPDX-License-Identifier: Apache-2.0
// The head of family gpt2: last norm, logits by the embedding or by a matrix of its own, loss, and the backward into
// the residual stream. Where the head is tied its gradient is not ready after it: the gather at the other end adds its
// share. Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/gpt2_layer.h"
#include "optimized/model/norm.h"

namespace plumbline::optimized {

template <typename T>
class Gpt2Head {
 public:
  Gpt2Head(const Gpt2Sizes& sizes, const Parameter<T>& norm_weight_d, const Parameter<T>& norm_bias_d,
           const Parameter<T>& matrix_vd, Backend& backend, Arena& arena);

  void Forward(std::span<const T> x_mtd);

  // Returns this micro-batch's share of the loss and keeps the gradient of the logits. Once after each Forward.
  double Loss(const MicroBatch& micro_batch, float inverse_tokens);

  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  const Gpt2Sizes& sizes_;
  Parameter<T> matrix_vd_;
  Backend& backend_;
  Norm<T> norm_;
  std::span<T> h_mtd_, dh_mtd_;
  std::span<float> logits_mtv_;
  std::span<T> dlogits_mtv_;  // in fp32 the same memory as the logits
};

}  // namespace plumbline::optimized
