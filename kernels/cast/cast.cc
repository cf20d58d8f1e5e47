// SPDX-License-Identifier: Apache-2.0
// CPU implementation of cast.h: one plain loop.
#include "kernels/cast/cast.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {

template <typename From, typename To>
void Cast(std::span<const From> x, std::span<To> y) {
  Require(x.size() == y.size(), "cast", "arguments must have the same size");
  for (size_t i = 0; i < y.size(); ++i) y[i] = FromFloat<To>(ToFloat(x[i]));
}

template void Cast(std::span<const float>, std::span<float>);
template void Cast(std::span<const float>, std::span<BFloat16>);
template void Cast(std::span<const float>, std::span<Float16>);
template void Cast(std::span<const BFloat16>, std::span<float>);
template void Cast(std::span<const Float16>, std::span<float>);

}  // namespace plumbline::kernels
