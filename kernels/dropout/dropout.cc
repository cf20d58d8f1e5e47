// SPDX-License-Identifier: Apache-2.0
// CPU implementation of dropout.h: one plain loop.
#include "kernels/dropout/dropout.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {

template <typename T>
void DropoutApply(std::span<const T> x, std::span<const uint8_t> keep, float scale, std::span<T> y) {
  Require(x.size() == y.size() && keep.size() == y.size(), "dropout", "arguments must have the same size");
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = FromFloat<T>(ToFloat(x[i]) * (scale * static_cast<float>(keep[i])));
  }
}

template void DropoutApply(std::span<const float>, std::span<const uint8_t>, float, std::span<float>);
template void DropoutApply(std::span<const BFloat16>, std::span<const uint8_t>, float, std::span<BFloat16>);
template void DropoutApply(std::span<const Float16>, std::span<const uint8_t>, float, std::span<Float16>);

}  // namespace plumbline::kernels
