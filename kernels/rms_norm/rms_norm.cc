// SPDX-License-Identifier: Apache-2.0
// CPU implementation of rms_norm.h: one row at a time.
#include "kernels/rms_norm/rms_norm.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/float_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

bool HasSize(size_t size, int64_t rows, int64_t cols) { return size == static_cast<size_t>(rows * cols); }

void RequireSizes(const RmsNormSizes& sizes, bool fit) {
  Require(sizes.rows >= 0 && sizes.width >= 1, "rms_norm", "rows must not be negative, width must be at least 1");
  Require(fit, "rms_norm", "an argument does not have the size of its shape");
}

inline float ReciprocalRoot(float square) {
  if (std::isinf(square)) return std::numeric_limits<float>::quiet_NaN();
  return 1.0f / std::sqrt(square);
}

}  // namespace

template <typename T>
void RmsNormForward(const RmsNormSizes& sizes, std::span<const T> x, std::span<const T> weight, float epsilon,
                    std::span<T> y, std::span<float> rstd) {
  const auto [rows, width] = sizes;
  RequireSizes(sizes, HasSize(x.size(), rows, width) && HasSize(y.size(), rows, width) &&
                          HasSize(weight.size(), 1, width) && HasSize(rstd.size(), rows, 1));
  Require(epsilon > 0, "rms_norm", "epsilon must be above 0");
  const auto num_channels = static_cast<float>(width);
  const T* const weights = weight.data();
  for (int64_t row = 0; row < rows; ++row) {
    const T* const in = x.data() + row * width;
    T* const out = y.data() + row * width;
    const float square_sum = LaneSum(width, [&](int64_t c) { return ToFloat(in[c]) * ToFloat(in[c]); });
    const float row_rstd = ReciprocalRoot(square_sum / num_channels + epsilon);
    rstd[row] = row_rstd;
    for (int64_t c = 0; c < width; ++c) out[c] = FromFloat<T>(ToFloat(in[c]) * row_rstd * ToFloat(weights[c]));
  }
}

template <typename From, typename T>
void RmsNormBackward(const RmsNormSizes& sizes, std::span<const From> dy, std::span<const T> x,
                     std::span<const T> weight, std::span<const float> rstd, std::span<const T> residual,
                     std::span<T> dx) {
  const auto [rows, width] = sizes;
  RequireSizes(sizes, HasSize(dy.size(), rows, width) && HasSize(x.size(), rows, width) &&
                          HasSize(weight.size(), 1, width) && HasSize(rstd.size(), rows, 1) &&
                          HasSize(dx.size(), rows, width) &&
                          (residual.empty() || HasSize(residual.size(), rows, width)));
  const auto num_channels = static_cast<float>(width);
  const T* const weights = weight.data();
  for (int64_t row = 0; row < rows; ++row) {
    const From* const upstream = dy.data() + row * width;
    const T* const in = x.data() + row * width;
    const T* const around = residual.empty() ? nullptr : residual.data() + row * width;
    T* const out = dx.data() + row * width;
    const float row_rstd = rstd[row];
    const auto scaled = [&](int64_t c) { return ToFloat(upstream[c]) * ToFloat(weights[c]); };
    const auto normal = [&](int64_t c) { return ToFloat(in[c]) * row_rstd; };
    const float slope = LaneSum(width, [&](int64_t c) { return scaled(c) * normal(c); }) / num_channels;
    const auto gradient = [&](int64_t c) { return row_rstd * (scaled(c) - normal(c) * slope); };
    if (around == nullptr) {
      for (int64_t c = 0; c < width; ++c) out[c] = FromFloat<T>(gradient(c));
    } else {
      for (int64_t c = 0; c < width; ++c) out[c] = FromFloat<T>(ToFloat(around[c]) + gradient(c));
    }
  }
}

template <typename From, typename T>
void RmsNormWeightBackward(const RmsNormSizes& sizes, std::span<const From> dy, std::span<const T> x,
                           std::span<const float> rstd, std::span<float> dweight) {
  const auto [rows, width] = sizes;
  RequireSizes(sizes, HasSize(dy.size(), rows, width) && HasSize(x.size(), rows, width) &&
                          HasSize(rstd.size(), rows, 1) && HasSize(dweight.size(), 1, width));
  float* const sum = dweight.data();
  for (int64_t row = 0; row < rows; ++row) {
    const From* const upstream = dy.data() + row * width;
    const T* const in = x.data() + row * width;
    const float row_rstd = rstd[row];
    for (int64_t c = 0; c < width; ++c) sum[c] += ToFloat(upstream[c]) * (ToFloat(in[c]) * row_rstd);
  }
}

template void RmsNormForward(const RmsNormSizes&, std::span<const float>, std::span<const float>, float,
                             std::span<float>, std::span<float>);
template void RmsNormForward(const RmsNormSizes&, std::span<const BFloat16>, std::span<const BFloat16>, float,
                             std::span<BFloat16>, std::span<float>);
template void RmsNormForward(const RmsNormSizes&, std::span<const Float16>, std::span<const Float16>, float,
                             std::span<Float16>, std::span<float>);
template void RmsNormBackward(const RmsNormSizes&, std::span<const float>, std::span<const float>,
                              std::span<const float>, std::span<const float>, std::span<const float>, std::span<float>);
template void RmsNormBackward(const RmsNormSizes&, std::span<const float>, std::span<const BFloat16>,
                              std::span<const BFloat16>, std::span<const float>, std::span<const BFloat16>,
                              std::span<BFloat16>);
template void RmsNormBackward(const RmsNormSizes&, std::span<const float>, std::span<const Float16>,
                              std::span<const Float16>, std::span<const float>, std::span<const Float16>,
                              std::span<Float16>);
template void RmsNormBackward(const RmsNormSizes&, std::span<const BFloat16>, std::span<const BFloat16>,
                              std::span<const BFloat16>, std::span<const float>, std::span<const BFloat16>,
                              std::span<BFloat16>);
template void RmsNormBackward(const RmsNormSizes&, std::span<const Float16>, std::span<const Float16>,
                              std::span<const Float16>, std::span<const float>, std::span<const Float16>,
                              std::span<Float16>);
template void RmsNormWeightBackward(const RmsNormSizes&, std::span<const float>, std::span<const float>,
                                    std::span<const float>, std::span<float>);
template void RmsNormWeightBackward(const RmsNormSizes&, std::span<const float>, std::span<const BFloat16>,
                                    std::span<const float>, std::span<float>);
template void RmsNormWeightBackward(const RmsNormSizes&, std::span<const float>, std::span<const Float16>,
                                    std::span<const float>, std::span<float>);
template void RmsNormWeightBackward(const RmsNormSizes&, std::span<const BFloat16>, std::span<const BFloat16>,
                                    std::span<const float>, std::span<float>);
template void RmsNormWeightBackward(const RmsNormSizes&, std::span<const Float16>, std::span<const Float16>,
                                    std::span<const float>, std::span<float>);

}  // namespace plumbline::kernels
