// SPDX-License-Identifier: Apache-2.0
// One of the places where family gpt2 drops elements. It draws the mask in the forward and keeps it for the backward;
// with a rate of 0 there is no mask and nothing is copied. Source: docs/semantics.md, "Family gpt2" (drop_j).
#pragma once

#include <cstdint>
#include <span>

#include "conformance/contract/random_stream.h"
#include "optimized/model/gpt2_layer.h"

namespace plumbline::optimized {

class Dropout {
 public:
  // elems: of a micro-batch.
  Dropout(const Gpt2Sizes& sizes, contract::Site site, int64_t layer, int64_t elems, Arena& arena);

  bool is_active() const { return sizes_.spec.dropout > 0; }

  // Draws the mask of the micro-batch. Before Apply.
  void Draw(const MicroBatch& micro_batch);

  // In place; forward and backward. U is the storage type or float.
  template <typename U>
  void Apply(std::span<U> x) const;

 private:
  const Gpt2Sizes& sizes_;
  contract::Site site_;
  int64_t layer_;
  int64_t elems_per_sample_;
  std::span<uint8_t> keep_;  // empty without dropout
};

}  // namespace plumbline::optimized
