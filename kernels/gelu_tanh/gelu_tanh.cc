// SPDX-License-Identifier: Apache-2.0
// CPU implementation of gelu_tanh.h. 1 + tanh(z / 2) is 2 / (1 + e^-z), the logistic function.
#include "kernels/gelu_tanh/gelu_tanh.h"

#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/float_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

constexpr float kTwiceRootTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

// The logistic function of z and its derivative s (1 - s), both without cancellation: e^-|z| is at most 1.
struct Logistic {
  float value;
  float slope;
};

inline Logistic LogisticOf(float z) {
  const float small = Exp(-std::fabs(z));
  const float share = 1.0f / (1.0f + small);
  return {z < 0 ? small * share : share, small * share * share};
}

// NaN stays NaN.
inline float Clamped(float x, float bound) {
  const float below = x > bound ? bound : x;
  return below < -bound ? -bound : below;
}

}  // namespace

template <typename T>
void GeluTanhForward(std::span<const T> x, std::span<T> y) {
  Require(x.size() == y.size(), "gelu_tanh", "arguments must have the same size");
  const T* const in = x.data();
  T* const out = y.data();
  const size_t size = y.size();
  for (size_t i = 0; i < size; ++i) {
    const float value = ToFloat(in[i]);
    const float z = kTwiceRootTwoOverPi * (value + kCubic * (value * value * value));
    out[i] = FromFloat<T>(value * LogisticOf(z).value);
  }
}

template <typename T>
void GeluTanhBackward(std::span<const T> dy, std::span<const T> x, std::span<T> dx) {
  Require(x.size() == dx.size() && dy.size() == dx.size(), "gelu_tanh", "arguments must have the same size");
  // Beyond this the function is 0 or x to the last bit; its formula would multiply 0 by infinity.
  constexpr float kSaturated = 32;
  const T* const upstream = dy.data();
  const T* const in = x.data();
  T* const out = dx.data();
  const size_t size = dx.size();
  for (size_t i = 0; i < size; ++i) {
    const float value = Clamped(ToFloat(in[i]), kSaturated);
    const float square = value * value;
    const Logistic logistic = LogisticOf(kTwiceRootTwoOverPi * (value + kCubic * (square * value)));
    const float z_slope = kTwiceRootTwoOverPi * (1.0f + 3 * kCubic * square);
    out[i] = FromFloat<T>(ToFloat(upstream[i]) * (logistic.value + value * logistic.slope * z_slope));
  }
}

template void GeluTanhForward(std::span<const float>, std::span<float>);
template void GeluTanhForward(std::span<const BFloat16>, std::span<BFloat16>);
template void GeluTanhForward(std::span<const Float16>, std::span<Float16>);
template void GeluTanhBackward(std::span<const float>, std::span<const float>, std::span<float>);
template void GeluTanhBackward(std::span<const BFloat16>, std::span<const BFloat16>, std::span<BFloat16>);
template void GeluTanhBackward(std::span<const Float16>, std::span<const Float16>, std::span<Float16>);

}  // namespace plumbline::kernels
