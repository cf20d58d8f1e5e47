// SPDX-License-Identifier: Apache-2.0
// The only file of the engine that includes oneDNN. LibTorch, the witness's library, computes float products with MKL: the
// two engines share no code of a product, and this one starts without LibTorch's half second.
//
// 16-bit inputs are widened to float and multiplied there: a product of two is exact in float, and sums are in float.
#include "optimized/backend/cpu_backend.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "conformance/contract/error.h"
#include "kernels/cast/cast.h"
#include "optimized/backend/storage_types.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

constexpr std::align_val_t kAlignment{64};

Storage AllocatePoisoned(int64_t size_bytes) {
  contract::Check(size_bytes >= 0, "a size in bytes is not negative");
  auto* data = static_cast<std::byte*>(::operator new(static_cast<size_t>(size_bytes), kAlignment));
  std::memset(data, 0xFF, static_cast<size_t>(size_bytes));
  return Storage(data, size_bytes, [](std::byte* memory) { ::operator delete(memory, kAlignment); });
}

std::string ShapeText(const Matrices& m) {
  return std::to_string(m.batch) + " x [" + std::to_string(m.rows) + ", " + std::to_string(m.cols) + "] " +
         std::string(contract::Name(m.dtype));
}

void RequireFit(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) {
  const bool shapes_fit = a.rows == c.rows && a.cols == b.rows && b.cols == c.cols;
  const bool batches_fit = a.batch == c.batch && b.batch == c.batch;
  const bool types_fit = IsStorageType(a.dtype) && a.dtype == b.dtype && IsStorageType(c.dtype);
  const bool mode_fits = mode == WriteMode::kAssign || c.dtype == DType::kF32;
  if (shapes_fit && batches_fit && types_fit && mode_fits) return;
  contract::Fail(contract::ErrorCode::kInvalidArgument, "matrix product of " + ShapeText(a) + " and " + ShapeText(b) +
                                                            (mode == WriteMode::kAssign ? " into " : " added to ") +
                                                            ShapeText(c) + " is not defined");
}

// Elements from the first to the last that the view covers.
int64_t ExtentElems(const Matrices& m) {
  if (m.rows == 0 || m.cols == 0 || m.batch == 0) return 0;
  return (m.batch - 1) * m.batch_stride + (m.rows - 1) * m.row_stride + (m.cols - 1) * m.col_stride + 1;
}

// How sgemm sees a matrix with a stride of 1: stored by rows as it is, or its transpose.
struct Stored {
  char transposed = 'N';
  dnnl_dim_t row_elems = 0;  // from one stored row to the next
};

// A stride between fewer than two rows or columns says nothing, and may be less than sgemm demands.
Stored StoredOf(const Matrices& m) {
  if (m.col_stride == 1 || m.cols <= 1) return {'N', std::max<dnnl_dim_t>(m.rows <= 1 ? m.cols : m.row_stride, 1)};
  contract::Check(m.row_stride == 1 || m.rows <= 1, "one stride of a matrix is 1");
  return {'T', m.col_stride};
}

const float* MatrixOf(const Matrices& m, int64_t index) {
  return static_cast<const float*>(m.data) + index * m.batch_stride;
}

// A sum of no terms, which sgemm leaves alone.
void FillWithZeros(const Matrices& c) {
  for (int64_t i = 0; i < c.batch; ++i) {
    for (int64_t r = 0; r < c.rows; ++r) {
      std::fill_n(static_cast<float*>(c.data) + i * c.batch_stride + r * c.row_stride, c.cols, 0.0f);
    }
  }
}

void MatMulFloat(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) {
  const Stored stored_a = StoredOf(a), stored_b = StoredOf(b), stored_c = StoredOf(c);
  contract::Check(stored_c.transposed == 'N', "a product is written to row-major matrices");
  if (a.cols == 0) {
    if (mode == WriteMode::kAssign) FillWithZeros(c);
    return;
  }
  const float beta = mode == WriteMode::kAccumulate ? 1 : 0;
  for (int64_t i = 0; i < c.batch; ++i) {
    float* out = static_cast<float*>(c.data) + i * c.batch_stride;
    const dnnl_status_t status =
        dnnl_sgemm(stored_a.transposed, stored_b.transposed, c.rows, c.cols, a.cols, /*alpha=*/1, MatrixOf(a, i),
                   stored_a.row_elems, MatrixOf(b, i), stored_b.row_elems, beta, out, stored_c.row_elems);
    if (status == dnnl_success) continue;
    contract::Fail(contract::ErrorCode::kInternal, "oneDNN refuses the product of " + ShapeText(a) + " and " +
                                                       ShapeText(b) + ": status " + std::to_string(status));
  }
}

class CpuBackend final : public Backend {
 public:
  // OpenMP's setting is per thread, hence the rule that a backend belongs to the thread that made it.
  CpuBackend() { omp_set_num_threads(1); }

  Storage Allocate(int64_t size_bytes, MemoryCategory) override { return AllocatePoisoned(size_bytes); }

  void Poison(std::byte* data, int64_t size_bytes) override {
    if (size_bytes > 0) std::memset(data, 0xFF, static_cast<size_t>(size_bytes));
  }

  void MatMul(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) override {
    RequireFit(a, b, c, mode);
    if (ExtentElems(c) == 0) return;
    const Matrices wide_a = Widened(a, scratch_a_);
    const Matrices wide_b = Widened(b, scratch_b_);
    if (c.dtype == DType::kF32) {
      MatMulFloat(wide_a, wide_b, c, mode);
      return;
    }
    const Matrices wide_c = OnScratch(c, scratch_c_);
    MatMulFloat(wide_a, wide_b, wide_c, mode);
    RoundInto(wide_c, c);
  }

 private:
  // The same view of a float copy. The copy covers gaps between rows as well; they are not read by the product.
  Matrices Widened(const Matrices& m, Storage& scratch) {
    if (m.dtype == DType::kF32) return m;
    const Matrices wide = OnScratch(m, scratch);
    const auto extent = static_cast<size_t>(ExtentElems(m));
    VisitStorage(m.dtype, [&](auto type) {
      using T = decltype(type);
      kernels::Cast(std::span<const T>(static_cast<const T*>(m.data), extent),
                    std::span<float>(static_cast<float*>(wide.data), extent));
    });
    return wide;
  }

  Matrices OnScratch(const Matrices& m, Storage& scratch) {
    const int64_t needed_bytes = ExtentElems(m) * static_cast<int64_t>(sizeof(float));
    if (scratch.size_bytes() < needed_bytes) scratch = AllocatePoisoned(needed_bytes);
    Matrices view = m;
    view.data = scratch.data();
    view.dtype = DType::kF32;
    return view;
  }

  // Row by row: what lies between the rows of c belongs to somebody else.
  static void RoundInto(const Matrices& wide, const Matrices& c) {
    contract::Check(c.col_stride == 1, "a product is written to row-major matrices");
    const auto cols = static_cast<size_t>(c.cols);
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t r = 0; r < c.rows; ++r) {
        const int64_t offset = b * c.batch_stride + r * c.row_stride;
        VisitStorage(c.dtype, [&](auto type) {
          using T = decltype(type);
          kernels::Cast(std::span<const float>(static_cast<const float*>(wide.data) + offset, cols),
                        std::span<T>(static_cast<T*>(c.data) + offset, cols));
        });
      }
    }
  }

  Storage scratch_a_;
  Storage scratch_b_;
  Storage scratch_c_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace plumbline::optimized
