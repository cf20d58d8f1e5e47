// SPDX-License-Identifier: Apache-2.0
// CPU implementation of fold.h: one plain loop each.
#include "kernels/fold/fold.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fold/fold_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireSizes(bool equal) { Require(equal, "fold", "arguments must have the same size"); }

}  // namespace

template <typename From, typename To>
void FoldForward(std::span<const From> x, float bound, std::span<To> y) {
  RequireSizes(x.size() == y.size());
  const FoldConstants fold(bound);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = FromFloat<To>(FoldValue(ToFloat(x[i]), fold));
  }
}

template <typename T>
void FoldBackward(std::span<const T> dy, std::span<const T> x, float bound, std::span<T> dx) {
  RequireSizes(dy.size() == dx.size() && x.size() == dx.size());
  const FoldConstants fold(bound);
  for (size_t i = 0; i < dx.size(); ++i) {
    dx[i] = FromFloat<T>(TimesSlope(ToFloat(dy[i]), ToFloat(x[i]), fold));
  }
}

template void FoldForward(std::span<const float>, float, std::span<float>);
template void FoldForward(std::span<const float>, float, std::span<BFloat16>);
template void FoldForward(std::span<const float>, float, std::span<Float16>);
template void FoldForward(std::span<const BFloat16>, float, std::span<BFloat16>);
template void FoldForward(std::span<const Float16>, float, std::span<Float16>);
template void FoldBackward(std::span<const float>, std::span<const float>, float, std::span<float>);
template void FoldBackward(std::span<const BFloat16>, std::span<const BFloat16>, float, std::span<BFloat16>);
template void FoldBackward(std::span<const Float16>, std::span<const Float16>, float, std::span<Float16>);

}  // namespace plumbline::kernels
