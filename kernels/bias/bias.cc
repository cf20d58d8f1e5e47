// SPDX-License-Identifier: Apache-2.0
// CPU implementation of bias.h: row after row.
#include "kernels/bias/bias.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireSizes(int64_t rows, size_t matrix_elems, size_t width) {
  Require(rows >= 0 && matrix_elems == static_cast<size_t>(rows) * width, "bias",
          "an argument does not have the size of its shape");
}

}  // namespace

template <typename From, typename T>
void BiasForward(int64_t rows, std::span<const From> x, std::span<const T> bias, std::span<T> y) {
  const auto width = static_cast<int64_t>(bias.size());
  RequireSizes(rows, x.size(), bias.size());
  RequireSizes(rows, y.size(), bias.size());
  const T* const biases = bias.data();
  for (int64_t row = 0; row < rows; ++row) {
    const From* const in = x.data() + row * width;
    T* const out = y.data() + row * width;
    for (int64_t c = 0; c < width; ++c) out[c] = FromFloat<T>(ToFloat(in[c]) + ToFloat(biases[c]));
  }
}

template <typename T>
void BiasBackward(int64_t rows, std::span<const T> dy, std::span<float> dbias) {
  const auto width = static_cast<int64_t>(dbias.size());
  RequireSizes(rows, dy.size(), dbias.size());
  float* const sum = dbias.data();
  for (int64_t row = 0; row < rows; ++row) {
    const T* const in = dy.data() + row * width;
    for (int64_t c = 0; c < width; ++c) sum[c] += ToFloat(in[c]);
  }
}

template void BiasForward(int64_t, std::span<const float>, std::span<const float>, std::span<float>);
template void BiasForward(int64_t, std::span<const float>, std::span<const BFloat16>, std::span<BFloat16>);
template void BiasForward(int64_t, std::span<const float>, std::span<const Float16>, std::span<Float16>);
template void BiasForward(int64_t, std::span<const BFloat16>, std::span<const BFloat16>, std::span<BFloat16>);
template void BiasForward(int64_t, std::span<const Float16>, std::span<const Float16>, std::span<Float16>);
template void BiasBackward(int64_t, std::span<const float>, std::span<float>);
template void BiasBackward(int64_t, std::span<const BFloat16>, std::span<float>);
template void BiasBackward(int64_t, std::span<const Float16>, std::span<float>);

}  // namespace plumbline::kernels
