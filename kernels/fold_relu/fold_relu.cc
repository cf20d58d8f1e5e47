// SPDX-License-Identifier: Apache-2.0
// CPU implementation of fold_relu.h: one plain loop each.
#include "kernels/fold_relu/fold_relu.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fold/fold_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireSizes(bool equal) { Require(equal, "fold_relu", "arguments must have the same size"); }

}  // namespace

template <typename T>
void FoldReluForward(std::span<const T> z, float bound, std::span<T> r) {
  RequireSizes(z.size() == r.size());
  const FoldConstants fold(bound);
  for (size_t i = 0; i < r.size(); ++i) {
    const float value = FoldValue(ToFloat(z[i]), fold);
    // Written so that a NaN is kept: only what is known to be negative becomes zero.
    r[i] = FromFloat<T>(value < 0 ? 0.0f : value);
  }
}

template <typename T>
void FoldReluBackward(std::span<const T> dr, std::span<const T> z, float bound, float gradient_bound, std::span<T> dz) {
  RequireSizes(dr.size() == dz.size() && z.size() == dz.size());
  const FoldConstants fold(bound);
  const FoldConstants gradient_fold(gradient_bound);
  for (size_t i = 0; i < dz.size(); ++i) {
    const float unfolded = ToFloat(z[i]);
    const float gradient = FoldValue(ToFloat(dr[i]), gradient_fold);
    const float passed = TimesSlope(gradient, unfolded, fold);
    dz[i] = FromFloat<T>(FoldValue(unfolded, fold) <= 0 ? 0.0f : passed);
  }
}

template void FoldReluForward(std::span<const float>, float, std::span<float>);
template void FoldReluForward(std::span<const BFloat16>, float, std::span<BFloat16>);
template void FoldReluForward(std::span<const Float16>, float, std::span<Float16>);
template void FoldReluBackward(std::span<const float>, std::span<const float>, float, float, std::span<float>);
template void FoldReluBackward(std::span<const BFloat16>, std::span<const BFloat16>, float, float, std::span<BFloat16>);
template void FoldReluBackward(std::span<const Float16>, std::span<const Float16>, float, float, std::span<Float16>);

}  // namespace plumbline::kernels
