// SPDX-License-Identifier: Apache-2.0
// The engine's guard against gradients that are not integers: rounding, uninitialised memory and infinities end a run
// here, before the optimizer can hide them. Source: docs/exact-family.md, "Backward" (last sentence).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace plumbline::optimized {

// Where a slice of a gradient comes from, for the message.
struct GradientOrigin {
  const std::string& tensor;
  int64_t begin;  // row-major index of the slice's first element in the whole tensor
  int64_t step;
  int64_t rank;
};

// Internal, naming tensor, element, value, step and rank, at the first element that is not an integer of at most 2^24
// in absolute value (above that, float cannot tell).
void CheckIntegral(std::span<const float> gradient, const GradientOrigin& origin);

}  // namespace plumbline::optimized
