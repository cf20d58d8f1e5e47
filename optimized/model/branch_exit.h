// SPDX-License-Identifier: Apache-2.0
// The end of a residual branch, shared by attention and MLP: x_out = x + drop(F(z)), and its backward up to z.
// Source: docs/exact-family.md, "Forward" and "Backward" (dz).
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/random_stream.h"
#include "optimized/model/layer.h"

namespace plumbline::optimized {

template <typename T>
class BranchExit {
 public:
  BranchExit(const ExactSizes& sizes, contract::Site site, int64_t layer, Arena& arena);

  // z_mtd is the caller's and must be the same in Backward. scratch_mtd is overwritten.
  void Forward(const MicroBatch& micro_batch, std::span<const T> x_mtd, std::span<const T> z_mtd,
               std::span<T> scratch_mtd, std::span<T> x_out_mtd);

  // dz = drop'(dx) * slope(z).
  void Backward(std::span<const T> dx_mtd, std::span<const T> z_mtd, std::span<T> dz_mtd) const;

 private:
  const ExactSizes& sizes_;
  contract::Site site_;
  int64_t layer_;
  std::span<uint8_t> keep_mtd_;  // empty without dropout
};

}  // namespace plumbline::optimized
