// SPDX-License-Identifier: Apache-2.0
// The end of a residual branch in the real families, x_out = x + drop(branch), and the beginning of its backward.
// Source: docs/semantics.md, "Family gpt2" (drop_2 and drop_3).
#pragma once

#include <cstdint>
#include <span>

#include "optimized/model/dropout.h"

namespace plumbline::optimized {

template <typename T>
class ResidualExit {
 public:
  ResidualExit(const RealSizes& sizes, contract::Site site, int64_t layer, Arena& arena)
      : drop_(sizes, site, layer, DroppedTensor::kStream, arena) {}

  // branch is overwritten with what is left of it.
  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<T> branch_mtd,
               std::span<T> x_out_mtd);

  // From the gradient of the stream after the join that of the branch; the former is also what flows around it.
  void Backward(std::span<const T> dx_mtd, std::span<T> dbranch_mtd) const;

 private:
  Dropout drop_;
};

}  // namespace plumbline::optimized
