// SPDX-License-Identifier: Apache-2.0
// See gradient_norm.h. Slices begin at multiples of 32 elements of their tensor (bucket_plan.h), as the sum demands.
#include "optimized/engine/gradient_norm.h"

#include <cmath>

#include "optimized/partition/bucket_plan.h"

namespace plumbline::optimized {

GradientNorm::Result GradientNorm::Compute(const ShardedOptimizer::GradientOf& gradient) {
  static_assert(kAlignmentElems % kernels::kSquareSumChunkElems == 0);
  sum_.Clear();
  kernels::SquareSum& sum = sum_[0];
  for (const ShardSlice& slice : inputs_.shard.slices) {
    if (!sum_.Counts(slice)) continue;
    const std::span<const float> values = gradient(slice);
    if (inputs_.exempt[slice.parameter]) {
      kernels::CountNotFinite(slice.begin, values, sum);
    } else {
      kernels::AddSquares(slice.begin, values, sum);
    }
  }
  sum_.Reduce();
  return {std::sqrt(sum.Total()), sum.AllFinite()};
}

}  // namespace plumbline::optimized
