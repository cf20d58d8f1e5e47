// SPDX-License-Identifier: Apache-2.0
// CPU implementation of rope.h: one head of one token at a time.
#include "kernels/rope/rope.h"

#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

void RequireHeadWidth(int64_t head_width) {
  Require(head_width >= 2 && head_width % 2 == 0, "rope", "head_width must be even and at least 2");
}

// Turns by the table's angles times direction, 1 or -1.
template <typename T>
void Turn(const RopeSizes& sizes, std::span<const float> cosine, std::span<const float> sine, float direction,
          std::span<T> x) {
  RequireHeadWidth(sizes.head_width);
  Require(sizes.samples >= 0 && sizes.positions >= 0 && sizes.heads >= 0, "rope", "sizes must not be negative");
  const int64_t half = sizes.head_width / 2;
  const auto table_elems = static_cast<size_t>(sizes.positions * half);
  const int64_t tokens = sizes.samples * sizes.positions;
  Require(cosine.size() == table_elems && sine.size() == table_elems &&
              x.size() == static_cast<size_t>(tokens * sizes.heads * sizes.head_width),
          "rope", "an argument does not have the size of its shape");
  for (int64_t token = 0; token < tokens; ++token) {
    const float* const cosines = cosine.data() + token % sizes.positions * half;
    const float* const sines = sine.data() + token % sizes.positions * half;
    for (int64_t head = 0; head < sizes.heads; ++head) {
      T* const first = x.data() + (token * sizes.heads + head) * sizes.head_width;
      T* const second = first + half;
      for (int64_t i = 0; i < half; ++i) {
        const float a = ToFloat(first[i]);
        const float b = ToFloat(second[i]);
        const float s = direction * sines[i];
        first[i] = FromFloat<T>(a * cosines[i] - b * s);
        second[i] = FromFloat<T>(b * cosines[i] + a * s);
      }
    }
  }
}

}  // namespace

void RopeTable(int64_t first_position, int64_t head_width, double theta, std::span<float> cosine,
               std::span<float> sine) {
  RequireHeadWidth(head_width);
  Require(first_position >= 0 && theta > 0, "rope", "first_position must not be negative, theta must be above 0");
  const int64_t half = head_width / 2;
  Require(cosine.size() == sine.size() && cosine.size() % static_cast<size_t>(half) == 0, "rope",
          "an argument does not have the size of its shape");
  const int64_t positions = static_cast<int64_t>(cosine.size()) / half;
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_width);
      const double angle = static_cast<double>(first_position + p) * std::pow(theta, exponent);
      cosine[p * half + i] = static_cast<float>(std::cos(angle));
      sine[p * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

template <typename T>
void RopeForward(const RopeSizes& sizes, std::span<const float> cosine, std::span<const float> sine, std::span<T> x) {
  Turn<T>(sizes, cosine, sine, 1, x);
}

template <typename T>
void RopeBackward(const RopeSizes& sizes, std::span<const float> cosine, std::span<const float> sine, std::span<T> dx) {
  Turn<T>(sizes, cosine, sine, -1, dx);
}

template void RopeForward(const RopeSizes&, std::span<const float>, std::span<const float>, std::span<float>);
template void RopeForward(const RopeSizes&, std::span<const float>, std::span<const float>, std::span<BFloat16>);
template void RopeForward(const RopeSizes&, std::span<const float>, std::span<const float>, std::span<Float16>);
template void RopeBackward(const RopeSizes&, std::span<const float>, std::span<const float>, std::span<float>);
template void RopeBackward(const RopeSizes&, std::span<const float>, std::span<const float>, std::span<BFloat16>);
template void RopeBackward(const RopeSizes&, std::span<const float>, std::span<const float>, std::span<Float16>);

}  // namespace plumbline::kernels
