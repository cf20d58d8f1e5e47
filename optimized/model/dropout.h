// SPDX-License-Identifier: Apache-2.0
// One of the places where the real families drop elements. It draws the mask in the forward and keeps it for the
// backward; with a rate of 0 there is no mask and nothing is copied. Source: docs/semantics.md, "Family gpt2" (drop_j).
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/random_stream.h"
#include "optimized/model/arena.h"
#include "optimized/model/real_layer.h"

namespace plumbline::optimized {

// What elements are dropped of.
enum class DroppedTensor {
  kStream,  // [m, t, d]
  kScores,  // [m, i, t, t]
};

class Dropout {
 public:
  Dropout(const RealSizes& sizes, contract::Site site, int64_t layer, DroppedTensor tensor, Arena& arena);

  bool is_active() const { return sizes_.spec.dropout > 0; }

  // Draws the mask of the micro-batch. Before Apply.
  void Draw(const MicroBatch& micro_batch);

  // In place; forward and backward. U is the storage type or float.
  template <typename U>
  void Apply(std::span<U> x) const;

 private:
  void DrawPart(const MicroBatch& micro_batch, int64_t offset, std::span<uint8_t> keep) const;

  const RealSizes& sizes_;
  contract::Site site_;
  int64_t layer_;
  DroppedTensor tensor_;
  int64_t elems_per_sample_;  // with all positions
  std::span<uint8_t> keep_;   // empty without dropout
};

}  // namespace plumbline::optimized
