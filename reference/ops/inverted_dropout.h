// SPDX-License-Identifier: Apache-2.0
// Dropout of any probability p with what is kept scaled by 1 / (1 − p), docs/semantics.md. The map is its own adjoint:
// the backward is the forward with the same mask.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/contract/random_stream.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference {

// Where a draw comes from; `first_element` is the element of the mask's first entry, the others follow row-major.
struct DropoutSite {
  uint64_t seed = 0;
  contract::Site site = contract::Site::kDropoutEmbedding;
  int64_t step = 0;
  int64_t layer = 0;
  int64_t first_element = 0;
};

// mask = 1 where Draw(site, element) ≥ floor(p · 2^32), else 0.   0 < p < 1   → [rows, cols]
Matrix KeepMask(const DropoutSite& site, int64_t rows, int64_t cols, double p);

// drop(y) = mask ⊙ y / (1 − p) where there is a mask, else y   [rows, cols] → [rows, cols]
Matrix InvertedDrop(const Matrix& y, const std::optional<Matrix>& mask, double p);

}  // namespace plumbline::reference
