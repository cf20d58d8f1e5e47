// SPDX-License-Identifier: Apache-2.0
// The layer norm at the head of a residual branch, forward and backward, with the statistics that it keeps between.
// Source: docs/semantics.md, "Family gpt2" (LN).
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/arena.h"
#include "optimized/model/real_layer.h"

namespace plumbline::optimized {

template <typename T>
class Norm {
 public:
  Norm(const RealSizes& sizes, const Parameter<T>& weight_d, const Parameter<T>& bias_d, Arena& arena);

  void Forward(std::span<const T> x_mtd, std::span<T> h_mtd);

  // dx = residual + the gradient through the norm; residual may be empty, or dx itself. Reports bias and weight.
  void Backward(const GradientWrites& writes, std::span<const T> dh_mtd, std::span<const T> x_mtd,
                std::span<const T> residual_mtd, std::span<T> dx_mtd) const;

 private:
  const RealSizes& sizes_;
  Parameter<T> weight_d_, bias_d_;
  std::span<float> mean_mt_, rstd_mt_;
};

}  // namespace plumbline::optimized
