// SPDX-License-Identifier: Apache-2.0
// The regions in which gradients are judged: each trained tensor, and of attn.qkv its q, k and v parts by themselves,
// so that a part that is small, or zero by symmetry (the key part of the bias), neither hides the others nor is hidden.
// Which elements they are, no arithmetic on values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/contract/model_spec.h"

namespace plumbline::conformance {

// Columns [first_col, end_col) of all rows of one tensor (a vector is one row).
struct GradientRegion {
  size_t tensor = 0;  // canonical index
  std::string name;   // "layers.0.attn.qkv.bias (k part)", or the tensor's name
  int64_t rows = 0;
  int64_t cols = 0;  // of the tensor
  int64_t first_col = 0;
  int64_t end_col = 0;
  bool is_vector = false;

  int64_t numel() const { return rows * (end_col - first_col); }
};

// In canonical order; parts in the order q, k, v. Frozen tensors have none.
std::vector<GradientRegion> GradientRegions(const contract::ModelSpec& model);

// Calls visit(row-major index in the tensor) for each element of the region, ascending.
template <typename Visit>
void ForEachElement(const GradientRegion& region, Visit visit) {
  for (int64_t row = 0; row < region.rows; ++row) {
    for (int64_t col = region.first_col; col < region.end_col; ++col)
      visit(static_cast<size_t>(row * region.cols + col));
  }
}

}  // namespace plumbline::conformance
