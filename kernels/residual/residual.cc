// SPDX-License-Identifier: Apache-2.0
// CPU implementation of residual.h: one plain loop each.
#include "kernels/residual/residual.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fold/fold_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireSizes(bool equal) { Require(equal, "residual", "arguments must have the same size"); }

}  // namespace

template <typename T>
void ResidualForward(std::span<const T> x, std::span<const T> branch, std::span<T> y) {
  RequireSizes(x.size() == y.size() && branch.size() == y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = FromFloat<T>(ToFloat(x[i]) + ToFloat(branch[i]));
  }
}

template <typename From, typename T>
void ResidualBackward(std::span<const From> branch, std::span<const T> x, float bound, float gradient_bound,
                      std::span<T> dx) {
  RequireSizes(branch.size() == dx.size() && x.size() == dx.size());
  const FoldConstants fold(bound);
  const FoldConstants gradient_fold(gradient_bound);
  for (size_t i = 0; i < dx.size(); ++i) {
    const float through_branch = TimesSlope(FoldValue(ToFloat(branch[i]), gradient_fold), ToFloat(x[i]), fold);
    dx[i] = FromFloat<T>(FoldValue(ToFloat(dx[i]) + through_branch, gradient_fold));
  }
}

template void ResidualForward(std::span<const float>, std::span<const float>, std::span<float>);
template void ResidualForward(std::span<const BFloat16>, std::span<const BFloat16>, std::span<BFloat16>);
template void ResidualForward(std::span<const Float16>, std::span<const Float16>, std::span<Float16>);
template void ResidualBackward(std::span<const float>, std::span<const float>, float, float, std::span<float>);
template void ResidualBackward(std::span<const BFloat16>, std::span<const BFloat16>, float, float, std::span<BFloat16>);
template void ResidualBackward(std::span<const Float16>, std::span<const Float16>, float, float, std::span<Float16>);
template void ResidualBackward(std::span<const float>, std::span<const BFloat16>, float, float, std::span<BFloat16>);
template void ResidualBackward(std::span<const float>, std::span<const Float16>, float, float, std::span<Float16>);

}  // namespace plumbline::kernels
