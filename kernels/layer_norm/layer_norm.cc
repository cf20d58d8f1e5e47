// SPDX-License-Identifier: Apache-2.0
// CPU implementation of layer_norm.h: one row at a time, in two passes over it (the mean first: a sum of squares minus
// a squared mean would cancel).
#include "kernels/layer_norm/layer_norm.h"

#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/float_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

bool HasSize(size_t size, int64_t rows, int64_t cols) { return size == static_cast<size_t>(rows * cols); }

void RequireSizes(const LayerNormSizes& sizes, bool fit) {
  Require(sizes.rows >= 0 && sizes.width >= 1, "layer_norm", "rows must not be negative, width must be at least 1");
  Require(fit, "layer_norm", "an argument does not have the size of its shape");
}

}  // namespace

template <typename T>
void LayerNormForward(const LayerNormSizes& sizes, std::span<const T> x, std::span<const T> weight,
                      std::span<const T> bias, float epsilon, std::span<T> y, std::span<float> mean,
                      std::span<float> rstd) {
  const auto [rows, width] = sizes;
  RequireSizes(sizes, HasSize(x.size(), rows, width) && HasSize(y.size(), rows, width) &&
                          HasSize(weight.size(), 1, width) && HasSize(bias.size(), 1, width) &&
                          HasSize(mean.size(), rows, 1) && HasSize(rstd.size(), rows, 1));
  Require(epsilon > 0, "layer_norm", "epsilon must be above 0");
  const auto num_channels = static_cast<float>(width);
  const T* const weights = weight.data();
  const T* const biases = bias.data();
  for (int64_t row = 0; row < rows; ++row) {
    const T* const in = x.data() + row * width;
    T* const out = y.data() + row * width;
    const float row_mean = LaneSum(width, [&](int64_t c) { return ToFloat(in[c]); }) / num_channels;
    const float square_sum = LaneSum(width, [&](int64_t c) {
      const float centred = ToFloat(in[c]) - row_mean;
      return centred * centred;
    });
    const float row_rstd = 1.0f / std::sqrt(square_sum / num_channels + epsilon);
    mean[row] = row_mean;
    rstd[row] = row_rstd;
    for (int64_t c = 0; c < width; ++c) {
      const float normal = (ToFloat(in[c]) - row_mean) * row_rstd;
      out[c] = FromFloat<T>(normal * ToFloat(weights[c]) + ToFloat(biases[c]));
    }
  }
}

template <typename T>
void LayerNormBackward(const LayerNormSizes& sizes, std::span<const T> dy, std::span<const T> x,
                       std::span<const T> weight, std::span<const float> mean, std::span<const float> rstd,
                       std::span<const T> residual, std::span<T> dx) {
  const auto [rows, width] = sizes;
  RequireSizes(sizes, HasSize(dy.size(), rows, width) && HasSize(x.size(), rows, width) &&
                          HasSize(weight.size(), 1, width) && HasSize(mean.size(), rows, 1) &&
                          HasSize(rstd.size(), rows, 1) && HasSize(dx.size(), rows, width) &&
                          (residual.empty() || HasSize(residual.size(), rows, width)));
  const auto num_channels = static_cast<float>(width);
  const T* const weights = weight.data();
  for (int64_t row = 0; row < rows; ++row) {
    const T* const upstream = dy.data() + row * width;
    const T* const in = x.data() + row * width;
    const T* const around = residual.empty() ? nullptr : residual.data() + row * width;
    T* const out = dx.data() + row * width;
    const float row_mean = mean[row];
    const float row_rstd = rstd[row];
    const auto scaled = [&](int64_t c) { return ToFloat(upstream[c]) * ToFloat(weights[c]); };
    const auto normal = [&](int64_t c) { return (ToFloat(in[c]) - row_mean) * row_rstd; };
    const float average = LaneSum(width, scaled) / num_channels;
    const float slope = LaneSum(width, [&](int64_t c) { return scaled(c) * normal(c); }) / num_channels;
    const auto gradient = [&](int64_t c) { return row_rstd * (scaled(c) - average - normal(c) * slope); };
    if (around == nullptr) {
      for (int64_t c = 0; c < width; ++c) out[c] = FromFloat<T>(gradient(c));
    } else {
      for (int64_t c = 0; c < width; ++c) out[c] = FromFloat<T>(ToFloat(around[c]) + gradient(c));
    }
  }
}

template <typename T>
void LayerNormWeightBackward(const LayerNormSizes& sizes, std::span<const T> dy, std::span<const T> x,
                             std::span<const float> mean, std::span<const float> rstd, std::span<float> dweight,
                             std::span<float> dbias) {
  const auto [rows, width] = sizes;
  RequireSizes(sizes, HasSize(dy.size(), rows, width) && HasSize(x.size(), rows, width) &&
                          HasSize(mean.size(), rows, 1) && HasSize(rstd.size(), rows, 1) &&
                          (dweight.empty() || HasSize(dweight.size(), 1, width)) &&
                          (dbias.empty() || HasSize(dbias.size(), 1, width)));
  for (int64_t row = 0; row < rows; ++row) {
    const T* const upstream = dy.data() + row * width;
    const T* const in = x.data() + row * width;
    const float row_mean = mean[row];
    const float row_rstd = rstd[row];
    if (!dweight.empty()) {
      float* const sum = dweight.data();
      for (int64_t c = 0; c < width; ++c) {
        sum[c] += ToFloat(upstream[c]) * ((ToFloat(in[c]) - row_mean) * row_rstd);
      }
    }
    if (!dbias.empty()) {
      float* const sum = dbias.data();
      for (int64_t c = 0; c < width; ++c) sum[c] += ToFloat(upstream[c]);
    }
  }
}

#define PLUMBLINE_INSTANTIATE(T)                                                                                     \
  template void LayerNormForward(const LayerNormSizes&, std::span<const T>, std::span<const T>, std::span<const T>,  \
                                 float, std::span<T>, std::span<float>, std::span<float>);                           \
  template void LayerNormBackward(const LayerNormSizes&, std::span<const T>, std::span<const T>, std::span<const T>, \
                                  std::span<const float>, std::span<const float>, std::span<const T>, std::span<T>); \
  template void LayerNormWeightBackward(const LayerNormSizes&, std::span<const T>, std::span<const T>,               \
                                        std::span<const float>, std::span<const float>, std::span<float>,            \
                                        std::span<float>)
PLUMBLINE_INSTANTIATE(float);
PLUMBLINE_INSTANTIATE(BFloat16);
PLUMBLINE_INSTANTIATE(Float16);
#undef PLUMBLINE_INSTANTIATE

}  // namespace plumbline::kernels
