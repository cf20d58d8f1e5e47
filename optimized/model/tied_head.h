// SPDX-License-Identifier: Apache-2.0
// The head of the exact family: logits by the tied embedding, loss, and the backward into the residual stream.
// The embedding's gradient is not ready after it: the gather at the other end adds its share.
// Source: docs/exact-family.md, "Forward" and "Backward".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/layer.h"

namespace plumbline::optimized {

template <typename T>
class TiedHead {
 public:
  TiedHead(const ExactSizes& sizes, Parameter<T> embed_vd, Backend& backend, Arena& arena);

  void Forward(std::span<const T> x_mtd);

  // Returns this micro-batch's share of the loss and keeps the gradient of the logits.
  double Loss(const MicroBatch& micro_batch, float inverse_tokens);

  // dx = G(dlogits E) * slope(x).
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  const ExactSizes& sizes_;
  Parameter<T> embed_vd_;
  Backend& backend_;
  std::span<T> h_mtd_, logits_mtv_, dlogits_mtv_;
};

}  // namespace plumbline::optimized
