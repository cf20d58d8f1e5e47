// SPDX-License-Identifier: Apache-2.0
// CPU implementation of adamw.h: one plain loop.
#include "kernels/adamw/adamw.h"

#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireOptions(const AdamWOptions& options) {
  Require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "adamw",
          "betas must be in [0, 1)");
  Require(options.epsilon >= 0, "adamw", "epsilon must not be negative");
  Require(options.t >= 1, "adamw", "the number of the update must be at least 1");
}

}  // namespace

template <typename T>
void AdamWStep(const AdamWOptions& options, std::span<const float> gradient, std::span<float> first_moment,
               std::span<float> second_moment, std::span<float> master, std::span<T> weight) {
  const size_t size = gradient.size();
  Require(first_moment.size() == size && second_moment.size() == size && master.size() == size && weight.size() == size,
          "adamw", "arguments must have the same size");
  RequireOptions(options);
  const auto t = static_cast<double>(options.t);
  const auto scale = static_cast<float>(options.gradient_scale);
  const bool decoupled = options.decoupled;
  const auto keep = static_cast<float>(decoupled ? 1 - options.lr * options.weight_decay : 1);
  const auto decay = static_cast<float>(options.weight_decay);
  const auto beta1 = static_cast<float>(options.beta1);
  const auto beta2 = static_cast<float>(options.beta2);
  const auto one_minus_beta1 = static_cast<float>(1 - options.beta1);
  const auto one_minus_beta2 = static_cast<float>(1 - options.beta2);
  const auto step_size = static_cast<float>(options.lr / (1 - std::pow(options.beta1, t)));
  const auto inverse_root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
  const auto epsilon = static_cast<float>(options.epsilon);
  const float* const g = gradient.data();
  float* const m = first_moment.data();
  float* const v = second_moment.data();
  float* const p = master.data();
  T* const w = weight.data();
  for (size_t i = 0; i < size; ++i) {
    const float scaled = g[i] * scale;
    const float own = decoupled ? scaled : scaled + decay * p[i];
    const float new_m = beta1 * m[i] + one_minus_beta1 * own;
    const float new_v = beta2 * v[i] + one_minus_beta2 * own * own;
    const float denominator = std::sqrt(new_v) * inverse_root_correction + epsilon;
    const float new_p = p[i] * keep - step_size * (new_m / denominator);
    m[i] = new_m;
    v[i] = new_v;
    p[i] = new_p;
    w[i] = FromFloat<T>(new_p);
  }
}

template void AdamWStep(const AdamWOptions&, std::span<const float>, std::span<float>, std::span<float>,
                        std::span<float>, std::span<float>);
template void AdamWStep(const AdamWOptions&, std::span<const float>, std::span<float>, std::span<float>,
                        std::span<float>, std::span<BFloat16>);
template void AdamWStep(const AdamWOptions&, std::span<const float>, std::span<float>, std::span<float>,
                        std::span<float>, std::span<Float16>);

}  // namespace plumbline::kernels
