// SPDX-License-Identifier: Apache-2.0
// Dropout of rate 1/2, docs/exact-family.md, "Forward" and "Random draws". The map is its own adjoint: the backward is
// the forward with the same mask.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/contract/random_stream.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// mask[n, c] = top bit of Draw(seed, site, step, layer, n · width + c), as 0 or 1
//   n counts the tokens of the global batch: sample · positions + position
//   result [tokens, width]
Matrix DropoutMask(uint64_t seed, contract::Site site, int64_t step, int64_t layer, int64_t tokens, int64_t width);

// drop(y) = 2 · mask ⊙ y where there is a mask, else y   [tokens, width] → [tokens, width]
Matrix Drop(const Matrix& y, const std::optional<Matrix>& mask);

}  // namespace plumbline::reference
