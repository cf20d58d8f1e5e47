// SPDX-License-Identifier: Apache-2.0
// A parameter as layers see it: where its weight is while it is in use, and where its gradient goes. A frozen parameter
// has no gradient: none is computed, stored or reported.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "optimized/model/model.h"

namespace plumbline::optimized {

// A weight, for matrices [in, out], and its gradient.
template <typename T>
struct Parameter {
  int64_t index;             // canonical
  void* const* weight_slot;  // in ParameterMemory
  int64_t elems;
  float* gradient_data;  // null if frozen

  bool is_frozen() const { return gradient_data == nullptr; }

  // While a unit that reads it is in use.
  std::span<T> weight() const { return {static_cast<T*>(*weight_slot), static_cast<size_t>(elems)}; }

  // Empty if frozen.
  std::span<float> gradient() const { return {gradient_data, is_frozen() ? size_t{0} : static_cast<size_t>(elems)}; }
};

// How one backward treats gradients.
struct GradientWrites {
  std::span<const WriteMode> modes;  // by canonical index
  const GradientReady& ready;

  template <typename T>
  WriteMode Mode(const Parameter<T>& parameter) const {
    return modes[parameter.index];
  }

  // For operations that only add: with kAssign the gradient begins at 0. Does nothing to a frozen parameter.
  template <typename T>
  void Begin(const Parameter<T>& parameter) const {
    const std::span<float> gradient = parameter.gradient();
    if (Mode(parameter) == WriteMode::kAssign) std::fill(gradient.begin(), gradient.end(), 0.0f);
  }

  template <typename T>
  void Ready(const Parameter<T>& parameter) const {
    if (!parameter.is_frozen()) ready(parameter.index);
  }
};

}  // namespace plumbline::optimized
