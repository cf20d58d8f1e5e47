// SPDX-License-Identifier: Apache-2.0
// CPU implementation of lion.h: one plain loop.
#include "kernels/lion/lion.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireOptions(const LionOptions& options) {
  Require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "lion",
          "betas must be in [0, 1)");
}

// 0 of a zero, NaN of NaN. Two selects, which a loop does several at a time.
double Sign(double value) {
  const double not_above = value > 0 ? 1.0 : value;
  return value < 0 ? -1.0 : not_above;
}

}  // namespace

template <typename T>
void LionStep(const LionOptions& options, std::span<const float> gradient, std::span<float> moment,
              std::span<float> master, std::span<T> weight) {
  const size_t size = gradient.size();
  Require(moment.size() == size && master.size() == size && weight.size() == size, "lion",
          "arguments must have the same size");
  RequireOptions(options);
  const double scale = options.gradient_scale;
  const double beta1 = options.beta1, one_minus_beta1 = 1 - options.beta1;
  const double beta2 = options.beta2, one_minus_beta2 = 1 - options.beta2;
  const auto keep = static_cast<float>(1 - options.lr * options.weight_decay);
  const auto lr = static_cast<float>(options.lr);
  const float* const g = gradient.data();
  float* const m = moment.data();
  float* const p = master.data();
  T* const w = weight.data();
  for (size_t i = 0; i < size; ++i) {
    const double scaled = scale * static_cast<double>(g[i]);
    const double old_m = m[i];
    const auto direction = static_cast<float>(Sign(beta1 * old_m + one_minus_beta1 * scaled));
    const float new_p = p[i] * keep - lr * direction;
    m[i] = static_cast<float>(beta2 * old_m + one_minus_beta2 * scaled);
    p[i] = new_p;
    w[i] = FromFloat<T>(new_p);
  }
}

template void LionStep(const LionOptions&, std::span<const float>, std::span<float>, std::span<float>,
                       std::span<float>);
template void LionStep(const LionOptions&, std::span<const float>, std::span<float>, std::span<float>,
                       std::span<BFloat16>);
template void LionStep(const LionOptions&, std::span<const float>, std::span<float>, std::span<float>,
                       std::span<Float16>);

}  // namespace plumbline::kernels
