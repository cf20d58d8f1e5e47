// SPDX-License-Identifier: Apache-2.0
// CPU implementation of scale.h: plain loops.
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

void ScaleEach(std::span<const float> factors, std::span<const float> x, std::span<float> y) {
  Require(x.size() == y.size() && factors.size() == y.size(), "scale", "arguments must have the same size");
  for (size_t i = 0; i < y.size(); ++i) y[i] = factors[i] * x[i];
}

}  // namespace plumbline::kernels
