// SPDX-License-Identifier: Apache-2.0
// The MLP of an exact layer with its residual join, forward and backward.
// Source: docs/exact-family.md, "Forward" and "Backward".
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/branch_exit.h"
#include "optimized/model/layer.h"

namespace plumbline::optimized {

template <typename T>
class Mlp {
 public:
  Mlp(const ExactSizes& sizes, int64_t layer, Parameter<T> up_df, Parameter<T> down_fd, Backend& backend,
      Scratch<T>& scratch, Arena& arena);

  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> x_out_mtd);

  // dx: in the gradient of the stream after the join, out that of the stream before it, x.
  void Backward(const GradientWrites& writes, std::span<const T> x_mtd, std::span<T> dx_mtd);

 private:
  const ExactSizes& sizes_;
  Parameter<T> up_df_, down_fd_;
  Backend& backend_;
  Scratch<T>& scratch_;
  BranchExit<T> exit_;
  std::span<T> h_mtd_, up_z_mtf_, r_mtf_, down_z_mtd_;
};

}  // namespace plumbline::optimized
