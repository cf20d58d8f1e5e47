// SPDX-License-Identifier: Apache-2.0
// CPU implementation of scale.h: one plain loop.
#include "kernels/scale/scale.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"

namespace plumbline::kernels {

template <typename T>
void Scale(float factor, std::span<const T> x, std::span<T> y) {
  Require(x.size() == y.size(), "scale", "arguments must have the same size");
  for (size_t i = 0; i < y.size(); ++i) y[i] = FromFloat<T>(factor * ToFloat(x[i]));
}

template void Scale(float, std::span<const float>, std::span<float>);
template void Scale(float, std::span<const BFloat16>, std::span<BFloat16>);

}  // namespace plumbline::kernels
