// SPDX-License-Identifier: Apache-2.0
// The only file of the engine that includes LibTorch on the CPU. Headers of single operators keep it cheap to compile.
//
// BF16 inputs are widened to float and multiplied there. LibTorch's own bf16 product (oneDNN) gives the same values,
// since it accumulates in float too, but costs 14 us a call against 1.4 us in float at 64 x 12 x 20 (measured on two
// cores of a machine without AMX); widening costs less than that difference at every size a CPU rank of this engine
// sees.
#include "optimized/backend/cpu_backend.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

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

at::Tensor View2d(const Matrices& m) {
  return at::from_blob(m.data, {m.rows, m.cols}, {m.row_stride, m.col_stride}, at::TensorOptions(at::kFloat));
}

at::Tensor View3d(const Matrices& m) {
  return at::from_blob(m.data, {m.batch, m.rows, m.cols}, {m.batch_stride, m.row_stride, m.col_stride},
                       at::TensorOptions(at::kFloat));
}

void MatMulFloat(const Matrices& a, const Matrices& b, const Matrices& c, WriteMode mode) {
  const c10::InferenceMode no_autograd;
  if (c.batch == 1) {
    at::Tensor out = View2d(c);
    if (mode == WriteMode::kAssign) {
      at::mm_out(out, View2d(a), View2d(b));
    } else {
      at::addmm_out(out, out, View2d(a), View2d(b));
    }
  } else {
    at::Tensor out = View3d(c);
    if (mode == WriteMode::kAssign) {
      at::bmm_out(out, View3d(a), View3d(b));
    } else {
      at::baddbmm_out(out, out, View3d(a), View3d(b));
    }
  }
}

class CpuBackend final : public Backend {
 public:
  // The setting is per thread in OpenMP and MKL, hence the rule that a backend belongs to the thread that made it.
  CpuBackend() { at::set_num_threads(1); }

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
