// SPDX-License-Identifier: Apache-2.0
// CPU implementation of lamb.h: two plain loops, the first in blocks whose directions stay in the cache.
#include "kernels/lamb/lamb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

constexpr size_t kBlockElems = 1024;
static_assert(kBlockElems % kSquareSumChunkElems == 0);

void RequireOptions(const LambOptions& options) {
  Require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "lamb",
          "betas must be in [0, 1)");
  Require(options.epsilon >= 0, "lamb", "epsilon must not be negative");
  Require(options.t >= 1, "lamb", "the number of the update must be at least 1");
}

// u of one element.
class Direction {
 public:
  explicit Direction(const LambOptions& options)
      : inverse_correction_(static_cast<float>(1 / (1 - std::pow(options.beta1, static_cast<double>(options.t))))),
        inverse_root_correction_(
            static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, static_cast<double>(options.t))))),
        epsilon_(static_cast<float>(options.epsilon)),
        decay_(static_cast<float>(options.weight_decay)) {}

  float operator()(float m, float v, float p) const {
    const float denominator = std::sqrt(v) * inverse_root_correction_ + epsilon_;
    return m * inverse_correction_ / denominator + decay_ * p;
  }

 private:
  float inverse_correction_;
  float inverse_root_correction_;
  float epsilon_;
  float decay_;
};

}  // namespace

void LambMoments(const LambOptions& options, int64_t first, std::span<const float> gradient,
                 std::span<float> first_moment, std::span<float> second_moment, std::span<const float> master,
                 SquareSum& of_master, SquareSum& of_direction) {
  const size_t size = gradient.size();
  Require(first_moment.size() == size && second_moment.size() == size && master.size() == size, "lamb",
          "arguments must have the same size");
  RequireOptions(options);
  const Direction direction(options);
  const auto scale = static_cast<float>(options.gradient_scale);
  const auto beta1 = static_cast<float>(options.beta1);
  const auto beta2 = static_cast<float>(options.beta2);
  const auto one_minus_beta1 = static_cast<float>(1 - options.beta1);
  const auto one_minus_beta2 = static_cast<float>(1 - options.beta2);
  AddSquares(first, master, of_master);
  std::array<float, kBlockElems> u;
  for (size_t begin = 0; begin < size; begin += kBlockElems) {
    const size_t elems = std::min(kBlockElems, size - begin);
    const float* const g = gradient.data() + begin;
    const float* const p = master.data() + begin;
    float* const m = first_moment.data() + begin;
    float* const v = second_moment.data() + begin;
    for (size_t i = 0; i < elems; ++i) {
      const float scaled = g[i] * scale;
      m[i] = beta1 * m[i] + one_minus_beta1 * scaled;
      v[i] = beta2 * v[i] + one_minus_beta2 * scaled * scaled;
      u[i] = direction(m[i], v[i], p[i]);
    }
    AddSquares(first + static_cast<int64_t>(begin), std::span(u).first(elems), of_direction);
  }
}

template <typename T>
void LambStep(const LambOptions& options, double ratio, std::span<const float> first_moment,
              std::span<const float> second_moment, std::span<float> master, std::span<T> weight) {
  const size_t size = first_moment.size();
  Require(second_moment.size() == size && master.size() == size && weight.size() == size, "lamb",
          "arguments must have the same size");
  RequireOptions(options);
  const Direction direction(options);
  const auto step_size = static_cast<float>(options.lr * ratio);
  const float* const m = first_moment.data();
  const float* const v = second_moment.data();
  float* const p = master.data();
  T* const w = weight.data();
  for (size_t i = 0; i < size; ++i) {
    const float new_p = p[i] - step_size * direction(m[i], v[i], p[i]);
    p[i] = new_p;
    w[i] = FromFloat<T>(new_p);
  }
}

template void LambStep(const LambOptions&, double, std::span<const float>, std::span<const float>, std::span<float>,
                       std::span<float>);
template void LambStep(const LambOptions&, double, std::span<const float>, std::span<const float>, std::span<float>,
                       std::span<BFloat16>);
template void LambStep(const LambOptions&, double, std::span<const float>, std::span<const float>, std::span<float>,
                       std::span<Float16>);

}  // namespace plumbline::kernels
