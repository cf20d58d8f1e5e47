// SPDX-License-Identifier: Apache-2.0
// The norm by the root mean square at the head of a residual branch, forward and backward, with the deviations that it
// keeps between. Source: docs/semantics.md, "Family llama" (RMS).
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/arena.h"
#include "optimized/model/real_layer.h"

namespace plumbline::optimized {

template <typename T>
class RmsNorm {
 public:
  RmsNorm(const RealSizes& sizes, const Parameter<T>& weight_d, Arena& arena);

  void Forward(std::span<const T> x_mtd, std::span<T> h_mtd);

  // dx = residual + the gradient through the norm; residual may be empty, or dx itself. Reports the weight. From is T,
  // or float for a gradient that is a sum of several products.
  template <typename From>
  void Backward(const GradientWrites& writes, std::span<const From> dh_mtd, std::span<const T> x_mtd,
                std::span<const T> residual_mtd, std::span<T> dx_mtd) const;

 private:
  const RealSizes& sizes_;
  Parameter<T> weight_d_;
  std::span<float> rstd_mt_;
};

}  // namespace plumbline::optimized
