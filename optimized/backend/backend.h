// SPDX-License-Identifier: Apache-2.0
// What the engine needs from a device: memory and matrix products. The CPU implementation (cpu_backend.h) keeps
// oneDNN in one .cc file; a CUDA one fits beside it. Fused operations are in kernels/, collectives in optimized/comm.
//
// A backend belongs to the thread that made it: it may hold scratch memory and thread-local settings of its library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "conformance/contract/dtype.h"
#include "optimized/backend/memory_ledger.h"

namespace plumbline::optimized {

// Owned memory, aligned to 64 bytes. Move-only; freed on destruction.
class Storage {
 public:
  using Deleter = std::function<void(std::byte*)>;

  Storage() = default;
  Storage(std::byte* data, int64_t size_bytes, Deleter deleter)
      : data_(data, std::move(deleter)), size_bytes_(size_bytes) {}

  std::byte* data() const { return data_.get(); }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::unique_ptr<std::byte, Deleter> data_{nullptr, [](std::byte*) {}};
  int64_t size_bytes_ = 0;
};

// `batch` matrices of one shape. Element (b, r, c) lies at data + b * batch_stride + r * row_stride + c * col_stride,
// in elements. One of row_stride and col_stride is 1: a transposed view swaps them.
struct Matrices {
  void* data = nullptr;
  contract::DType dtype = contract::DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  int64_t batch = 1;
  int64_t batch_stride = 0;

  Matrices Transposed() const { return {data, dtype, cols, rows, col_stride, row_stride, batch, batch_stride}; }
};

// A dense row-major matrix, or `batch` of them one after the other.
inline Matrices DenseMatrices(void* data, contract::DType dtype, int64_t rows, int64_t cols, int64_t batch = 1) {
  return {data, dtype, rows, cols, cols, 1, batch, rows * cols};
}

enum class WriteMode { kAssign, kAccumulate };

class Backend {
 public:
  virtual ~Backend() = default;

  // Every byte is 0xFF: NaN in each floating-point type, so that a read of memory that nobody wrote shows in the
  // result. This holds in production too; padding is never anything else. The category is for the books only.
  virtual Storage Allocate(int64_t size_bytes, MemoryCategory category) = 0;

  // Makes every byte 0xFF again: for memory whose contents must not be read any more.
  virtual void Poison(std::byte* data, int64_t size_bytes) = 0;

  // c = a b, or c += a b, for each matrix of the batch. Products are accumulated in float whatever the inputs' type and
  // rounded once, to c's type. Types: a and b of one of F32, BF16 and F16, c of any; kAccumulate with F32 only, since a
  // partial sum of 16 bits would round. Blocks until c is written (a later CUDA sibling: ordered on its stream).
  // Errors: InvalidArgument if shapes, batches or types do not fit.
  virtual void MatMul(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) = 0;
};

}  // namespace plumbline::optimized
