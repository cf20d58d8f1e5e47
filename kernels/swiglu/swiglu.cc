// SPDX-License-Identifier: Apache-2.0
// CPU implementation of swiglu.h: one plain loop each.
#include "kernels/swiglu/swiglu.h"

#include <cmath>
#include <cstddef>

#include "kernels/arguments.h"
#include "kernels/bf16.h"
#include "kernels/float_math.h"
#include "kernels/fp16.h"

namespace plumbline::kernels {
namespace {

// The logistic function and its derivative s (1 - s), both without cancellation: e^-|z| is at most 1.
struct Logistic {
  float value;
  float slope;
};

inline Logistic LogisticOf(float z) {
  const float small = Exp(-std::fabs(z));
  const float share = 1.0f / (1.0f + small);
  return {z < 0 ? small * share : share, small * share * share};
}

// The slope of silu. Beyond kSaturated it is 0 or 1 to the last bit; its formula would multiply infinity by 0. NaN
// stays NaN.
inline float SiluSlope(float gate, const Logistic& logistic) {
  constexpr float kSaturated = 128;
  const float below = gate > kSaturated ? kSaturated : gate;
  const float bounded = below < -kSaturated ? -kSaturated : below;
  return logistic.value + bounded * logistic.slope;
}

}  // namespace

template <typename T>
void SwigluForward(std::span<const T> gate, std::span<const T> up, std::span<T> y) {
  Require(gate.size() == y.size() && up.size() == y.size(), "swiglu", "arguments must have the same size");
  const T* const gates = gate.data();
  const T* const ups = up.data();
  T* const out = y.data();
  const size_t size = y.size();
  for (size_t i = 0; i < size; ++i) {
    const float z = ToFloat(gates[i]);
    out[i] = FromFloat<T>(z * LogisticOf(z).value * ToFloat(ups[i]));
  }
}

template <typename T>
void SwigluBackward(std::span<const T> dy, std::span<const T> gate, std::span<const T> up, std::span<T> dgate,
                    std::span<T> dup) {
  Require(dy.size() == dgate.size() && gate.size() == dgate.size() && up.size() == dgate.size() &&
              dup.size() == dgate.size(),
          "swiglu", "arguments must have the same size");
  const T* const upstream = dy.data();
  const T* const gates = gate.data();
  const T* const ups = up.data();
  T* const gate_out = dgate.data();
  T* const up_out = dup.data();
  const size_t size = dgate.size();
  for (size_t i = 0; i < size; ++i) {
    const float gradient = ToFloat(upstream[i]);
    const float z = ToFloat(gates[i]);
    const float factor = ToFloat(ups[i]);
    const Logistic logistic = LogisticOf(z);
    gate_out[i] = FromFloat<T>(gradient * factor * SiluSlope(z, logistic));
    up_out[i] = FromFloat<T>(gradient * (z * logistic.value));
  }
}

template void SwigluForward(std::span<const float>, std::span<const float>, std::span<float>);
template void SwigluForward(std::span<const BFloat16>, std::span<const BFloat16>, std::span<BFloat16>);
template void SwigluForward(std::span<const Float16>, std::span<const Float16>, std::span<Float16>);
template void SwigluBackward(std::span<const float>, std::span<const float>, std::span<const float>, std::span<float>,
                             std::span<float>);
template void SwigluBackward(std::span<const BFloat16>, std::span<const BFloat16>, std::span<const BFloat16>,
                             std::span<BFloat16>, std::span<BFloat16>);
template void SwigluBackward(std::span<const Float16>, std::span<const Float16>, std::span<const Float16>,
                             std::span<Float16>, std::span<Float16>);

}  // namespace plumbline::kernels
