// SPDX-License-Identifier: Apache-2.0
// Memory of a model's activations: everything is taken when the model is built, nothing in a step.
// Also the small vocabulary by which typed model code talks to the untyped backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/backend/backend.h"
#include "optimized/backend/storage_types.h"

namespace plumbline::optimized {

// A dense view of [batch, rows, cols] on a span.
template <typename T>
Matrices Dense(std::span<T> memory, int64_t rows, int64_t cols, int64_t batch = 1) {
  return DenseMatrices(memory.data(), kDTypeOf<T>, rows, cols, batch);
}

// Spans of aligned, poisoned memory that live as long as the arena.
class Arena {
 public:
  explicit Arena(Backend& backend) : backend_(backend) {}

  template <typename T>
  std::span<T> Take(int64_t elems) {
    storages_.push_back(backend_.Allocate(elems * static_cast<int64_t>(sizeof(T)), MemoryCategory::kActivations));
    return {reinterpret_cast<T*>(storages_.back().data()), static_cast<size_t>(elems)};
  }

 private:
  Backend& backend_;
  std::vector<Storage> storages_;
};

}  // namespace plumbline::optimized
