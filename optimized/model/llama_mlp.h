// SPDX-License-Identifier: Apache-2.0
// The gated MLP of a llama layer with its norm and residual join, forward and backward.
// Source: docs/semantics.md, "Family llama"; Shazeer 2020.
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/llama_layer.h"
#include "optimized/model/projection.h"
#include "optimized/model/residual_exit.h"
#include "optimized/model/rms_norm.h"

namespace plumbline::optimized {

template <typename T>
class LlamaMlp {
 public:
  // parameters: norm weight, gate, up, down.
  LlamaMlp(const LlamaSizes& sizes, int64_t layer, std::span<const Parameter<T>> parameters, Backend& backend,
           LlamaScratch<T>& scratch, Arena& arena);

  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd);

  // dx: in the gradient of the stream after the join, out that of the stream before the norm, x.
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  const LlamaSizes& sizes_;
  LlamaScratch<T>& scratch_;
  RmsNorm<T> norm_;
  Projection<T> gate_, up_, down_;
  ResidualExit<T> exit_;
  std::span<T> h_mtd_, g_mtf_, u_mtf_, a_mtf_;  // after the norm; gate, up and their activation
};

}  // namespace plumbline::optimized
