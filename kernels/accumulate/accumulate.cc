// SPDX-License-Identifier: Apache-2.0
// CPU implementation of accumulate.h: one plain loop.
#include "kernels/accumulate/accumulate.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"

namespace plumbline::kernels {

template <typename T>
void Accumulate(std::span<const T> x, std::span<T> sum) {
  Require(x.size() == sum.size(), "accumulate", "arguments must have the same size");
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
}

template <>
void Accumulate(std::span<const BFloat16> x, std::span<BFloat16> sum) {
  Require(x.size() == sum.size(), "accumulate", "arguments must have the same size");
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = FromFloat<BFloat16>(ToFloat(sum[i]) + ToFloat(x[i]));
}

template void Accumulate(std::span<const float>, std::span<float>);
template void Accumulate(std::span<const double>, std::span<double>);

}  // namespace plumbline::kernels
