// SPDX-License-Identifier: Apache-2.0
// The MLP of a gpt2 layer with its norm and residual join, forward and backward.
// Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/gpt2_layer.h"
#include "optimized/model/linear.h"
#include "optimized/model/norm.h"
#include "optimized/model/residual_exit.h"

namespace plumbline::optimized {

template <typename T>
class Gpt2Mlp {
 public:
  // parameters: norm weight and bias, up weight and bias, down weight and bias.
  Gpt2Mlp(const RealSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters, Backend& backend,
          Gpt2Scratch<T>& scratch, Arena& arena);

  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd);

  // dx: in the gradient of the stream after the join, out that of the stream before the norm, x.
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  const RealSizes& sizes_;
  Gpt2Scratch<T>& scratch_;
  Norm<T> norm_;
  Linear<T> up_, down_;
  ResidualExit<T> exit_;
  std::span<T> h_mtd_, u_mtf_, g_mtf_;  // after the norm, before and after GELU
};

}  // namespace plumbline::optimized
