// SPDX-License-Identifier: Apache-2.0
// CPU implementation of sgd.h: one plain loop for each of its three cases.
#include "kernels/sgd/sgd.h"

#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {

template <typename T>
void SgdStep(const SgdOptions& options, std::span<const float> gradient, std::span<float> buffer,
             std::span<float> master, std::span<T> weight) {
  const size_t size = gradient.size();
  Require(options.momentum >= 0, "sgd", "momentum must not be negative");
  Require(options.momentum > 0 || !options.nesterov, "sgd", "nesterov needs a momentum above 0");
  Require(options.t >= 1, "sgd", "the number of the update must be at least 1");
  const bool has_momentum = options.momentum > 0;
  Require(buffer.size() == (has_momentum ? size : 0) && master.size() == size && weight.size() == size, "sgd",
          "arguments must have the same size; the buffer is empty without momentum");
  const auto lr = static_cast<float>(options.lr);
  const auto momentum = static_cast<float>(options.momentum);
  const bool nesterov = options.nesterov;
  const auto decay = static_cast<float>(options.weight_decay);
  const auto scale = static_cast<float>(options.gradient_scale);
  const float* const g = gradient.data();
  float* const b = buffer.data();
  float* const p = master.data();
  T* const w = weight.data();
  const auto decayed = [&](size_t i) { return g[i] * scale + decay * p[i]; };
  const auto update = [&](size_t i, float direction) {
    p[i] = p[i] - lr * direction;
    w[i] = FromFloat<T>(p[i]);
  };
  // After the momentum: `own` is what it was made of.
  const auto advance = [&](size_t i, float own) { update(i, nesterov ? own + momentum * b[i] : b[i]); };
  if (!has_momentum) {
    for (size_t i = 0; i < size; ++i) update(i, decayed(i));
  } else if (options.t == 1) {
    for (size_t i = 0; i < size; ++i) {
      const float own = decayed(i);
      b[i] = own;
      advance(i, own);
    }
  } else {
    for (size_t i = 0; i < size; ++i) {
      const float own = decayed(i);
      b[i] = momentum * b[i] + own;
      advance(i, own);
    }
  }
}

template void SgdStep(const SgdOptions&, std::span<const float>, std::span<float>, std::span<float>, std::span<float>);
template void SgdStep(const SgdOptions&, std::span<const float>, std::span<float>, std::span<float>,
                      std::span<BFloat16>);
template void SgdStep(const SgdOptions&, std::span<const float>, std::span<float>, std::span<float>,
                      std::span<Float16>);

}  // namespace plumbline::kernels
