// SPDX-License-Identifier: Apache-2.0
// See gradient_norm.h. Slices begin at multiples of 32 elements of their tensor (bucket_plan.h), as the sum demands.
#include "optimized/engine/gradient_norm.h"

#include <cmath>

namespace plumbline::optimized {

GradientNorm::Result GradientNorm::Compute(const ShardedOptimizer::GradientOf& gradient) {
  static_assert(kAlignmentElems % kernels::kSquareSumChunkElems == 0);
  constexpr int kScalarStream = 0;
  sum_ = {};
  for (const ShardSlice& slice : inputs_.shard.slices) kernels::AddSquares(slice.begin, gradient(slice), sum_);
  if (inputs_.communicator != nullptr) {
    const Buffer terms{sum_.terms.data(), static_cast<int64_t>(sum_.terms.size()), contract::DType::kF64};
    reduced_ = inputs_.communicator->AllReduce(terms, {"gradient norm", inputs_.timeout, kScalarStream});
    reduced_.Wait();
  }
  return {std::sqrt(sum_.Total()), sum_.AllFinite()};
}

}  // namespace plumbline::optimized
