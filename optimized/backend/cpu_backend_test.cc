// SPDX-License-Identifier: Apache-2.0
// Poisoned, aligned memory, and products against naive sums over shapes, transposes, batches, types and gaps between
// rows.
#include "optimized/backend/cpu_backend.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "conformance/contract/error.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "optimized/backend/storage_types.h"

namespace plumbline::optimized {
namespace {

using contract::DType;
using kernels::BFloat16;

double Read(const Matrices& m, int64_t b, int64_t r, int64_t c) {
  const int64_t i = b * m.batch_stride + r * m.row_stride + c * m.col_stride;
  return VisitStorage(
      m.dtype, [&](auto type) { return double{kernels::ToFloat(static_cast<const decltype(type)*>(m.data)[i])}; });
}

// Memory for a view with `gap` elements between rows, which hold NaN; values are small integers.
struct Operand {
  Operand(DType dtype, int64_t rows, int64_t cols, int64_t batch, int64_t gap, bool transposed, int seed)
      : memory(batch * (transposed ? cols : rows) * ((transposed ? rows : cols) + gap) * sizeof(float),
               std::byte{0xFF}) {
    const int64_t stored_rows = transposed ? cols : rows;
    const int64_t stored_cols = transposed ? rows : cols;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t r = 0; r < stored_rows; ++r) {
        for (int64_t c = 0; c < stored_cols; ++c) {
          const auto value = static_cast<float>((seed + 7 * b + 5 * r + 3 * c) % 7 - 3);
          VisitStorage(dtype, [&](auto type) {
            using T = decltype(type);
            const int64_t index = (b * stored_rows + r) * (stored_cols + gap) + c;
            reinterpret_cast<T*>(memory.data())[index] = kernels::FromFloat<T>(value);
          });
        }
      }
    }
    view = {memory.data(),     dtype, stored_rows, stored_cols,
            stored_cols + gap, 1,     batch,       stored_rows * (stored_cols + gap)};
    if (transposed) view = view.Transposed();
  }

  std::vector<std::byte> memory;
  Matrices view;
};

double NaiveProduct(const Matrices& a, const Matrices& b, int64_t batch, int64_t r, int64_t c) {
  double sum = 0;
  for (int64_t k = 0; k < a.cols; ++k) sum += Read(a, batch, r, k) * Read(b, batch, k, c);
  return sum;
}

void CheckProduct(Backend& backend, DType in, DType out, int64_t m, int64_t k, int64_t n, int64_t batch, int64_t gap) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const WriteMode mode : {WriteMode::kAssign, WriteMode::kAccumulate}) {
        if (mode == WriteMode::kAccumulate && out != DType::kF32) continue;
        const Operand a(in, m, k, batch, gap, transpose_a, 1), b(in, k, n, batch, gap, transpose_b, 2);
        const Operand before(out, m, n, batch, gap, false, 3);
        Operand c(out, m, n, batch, gap, false, 3);
        backend.MatMul(a.view, b.view, c.view, mode);
        for (int64_t i = 0; i < batch; ++i) {
          for (int64_t row = 0; row < m; ++row) {
            for (int64_t col = 0; col < n; ++col) {
              const double added = mode == WriteMode::kAccumulate ? Read(before.view, i, row, col) : 0;
              ASSERT_EQ(Read(c.view, i, row, col), NaiveProduct(a.view, b.view, i, row, col) + added)
                  << m << "x" << k << "x" << n << " batch " << batch << " gap " << gap;
            }
            for (int64_t col = n; col < n + gap; ++col) ASSERT_TRUE(std::isnan(Read(c.view, i, row, col)));
          }
        }
      }
    }
  }
}

TEST(CpuBackend, ProductsEqualNaiveSumsForAllTransposesModesAndTypes) {
  const auto backend = MakeCpuBackend();
  for (const auto& [in, out] : {std::pair{DType::kF32, DType::kF32}, std::pair{DType::kBF16, DType::kF32},
                                std::pair{DType::kBF16, DType::kBF16}, std::pair{DType::kF16, DType::kF32},
                                std::pair{DType::kF16, DType::kF16}}) {
    for (const auto& [m, k, n] : {std::tuple{1, 1, 1}, std::tuple{1, 7, 1}, std::tuple{5, 1, 3}, std::tuple{8, 4, 8},
                                  std::tuple{17, 12, 20}, std::tuple{13, 11, 19}}) {
      for (const int64_t gap : {0, 3}) CheckProduct(*backend, in, out, m, k, n, 1, gap);
    }
  }
}

TEST(CpuBackend, BatchedProductsEqualNaiveSums) {
  const auto backend = MakeCpuBackend();
  for (const auto& [in, out] : {std::pair{DType::kF32, DType::kF32}, std::pair{DType::kBF16, DType::kF32},
                                std::pair{DType::kBF16, DType::kBF16}, std::pair{DType::kF16, DType::kF32},
                                std::pair{DType::kF16, DType::kF16}}) {
    for (const int64_t batch : {2, 3, 24}) {
      for (const auto& [m, k, n] :
           {std::tuple{1, 1, 1}, std::tuple{8, 4, 8}, std::tuple{24, 4, 8}, std::tuple{9, 7, 5}}) {
        for (const int64_t gap : {0, 2}) CheckProduct(*backend, in, out, m, k, n, batch, gap);
      }
    }
  }
}

TEST(CpuBackend, AssignOverwritesNanAndEmptyResultsAreNotTouched) {
  const auto backend = MakeCpuBackend();
  float a[2] = {1, 2}, b[2] = {3, 4}, c[1] = {NAN};
  backend->MatMul(DenseMatrices(a, DType::kF32, 1, 2), DenseMatrices(b, DType::kF32, 2, 1),
                  DenseMatrices(c, DType::kF32, 1, 1), WriteMode::kAssign);
  EXPECT_EQ(c[0], 11);
  backend->MatMul(DenseMatrices(a, DType::kF32, 0, 2), DenseMatrices(b, DType::kF32, 2, 1),
                  DenseMatrices(c, DType::kF32, 0, 1), WriteMode::kAssign);
  EXPECT_EQ(c[0], 11);
}

TEST(CpuBackend, ASumOfNoTermsIsZeroOrWhatWasThere) {
  const auto backend = MakeCpuBackend();
  float none[1] = {NAN}, c[2] = {NAN, NAN};
  const auto multiply = [&](WriteMode mode) {
    backend->MatMul(DenseMatrices(none, DType::kF32, 2, 0), DenseMatrices(none, DType::kF32, 0, 1),
                    DenseMatrices(c, DType::kF32, 2, 1), mode);
  };
  multiply(WriteMode::kAssign);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[1], 0);
  c[0] = 3;
  multiply(WriteMode::kAccumulate);
  EXPECT_EQ(c[0], 3);
  EXPECT_EQ(c[1], 0);
}

// What relations between layouts rest on: the address changes with the layout, the bits may not. Ranks are threads.
TEST(CpuBackend, BitsDependNeitherOnTheAddressNorOnOtherThreads) {
  constexpr int64_t kRows = 48, kInner = 33, kCols = 57, kMostShift = 7;
  const auto value = [](int64_t i) { return static_cast<float>(i * 7919 % 101) / 13 - 3; };
  const auto product = [&](int64_t shift) {
    const auto backend = MakeCpuBackend();
    std::vector<float> a(kRows * kInner + kMostShift), b(kInner * kCols + kMostShift), c(kRows * kCols + kMostShift);
    for (int64_t i = 0; i < kRows * kInner; ++i) a[i + shift] = value(i);
    for (int64_t i = 0; i < kInner * kCols; ++i) b[i + shift] = value(3 * i + 1);
    backend->MatMul(DenseMatrices(a.data() + shift, DType::kF32, kRows, kInner),
                    DenseMatrices(b.data() + shift, DType::kF32, kInner, kCols),
                    DenseMatrices(c.data() + shift, DType::kF32, kRows, kCols), WriteMode::kAssign);
    return std::vector<float>(c.begin() + shift, c.begin() + shift + kRows * kCols);
  };
  const std::vector<float> expected = product(0);
  std::vector<std::thread> threads;
  std::atomic<int> num_others = 0;
  for (int64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 500; ++i) num_others += product((thread + i) % (kMostShift + 1)) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_others, 0);
}

TEST(CpuBackend, AProductThatFp16CannotHoldIsInfiniteThereAndNotInFloatAndInfinityTimesZeroIsNan) {
  const auto backend = MakeCpuBackend();
  const auto half = [](float value) { return kernels::FromFloat<kernels::Float16>(value); };
  kernels::Float16 a[2] = {half(300), half(-300)}, b[2] = {half(300), half(0x1p-24f)}, c[4];
  float wide[4];
  const auto multiply = [&](const Matrices& result) {
    backend->MatMul(DenseMatrices(a, DType::kF16, 2, 1), DenseMatrices(b, DType::kF16, 1, 2), result,
                    WriteMode::kAssign);
  };
  multiply(DenseMatrices(c, DType::kF16, 2, 2));
  multiply(DenseMatrices(wide, DType::kF32, 2, 2));
  EXPECT_EQ(kernels::ToFloat(c[0]), INFINITY);
  EXPECT_EQ(kernels::ToFloat(c[1]), 300 * 0x1p-24f);
  EXPECT_EQ(kernels::ToFloat(c[2]), -INFINITY);
  EXPECT_EQ(wide[0], 90000);
  a[0] = half(INFINITY), b[1] = half(0);
  multiply(DenseMatrices(wide, DType::kF32, 2, 2));
  EXPECT_EQ(wide[0], INFINITY);
  EXPECT_TRUE(std::isnan(wide[1]));
}

TEST(CpuBackend, BFloat16ProductsAccumulateInFloat) {
  const auto backend = MakeCpuBackend();
  // 256 + 1 - 256: a partial sum in bf16 would lose the 1.
  BFloat16 a[3] = {kernels::FromFloat<BFloat16>(256), kernels::FromFloat<BFloat16>(1),
                   kernels::FromFloat<BFloat16>(-256)};
  BFloat16 ones[3] = {kernels::FromFloat<BFloat16>(1), kernels::FromFloat<BFloat16>(1),
                      kernels::FromFloat<BFloat16>(1)};
  BFloat16 c[1];
  backend->MatMul(DenseMatrices(a, DType::kBF16, 1, 3), DenseMatrices(ones, DType::kBF16, 3, 1),
                  DenseMatrices(c, DType::kBF16, 1, 1), WriteMode::kAssign);
  EXPECT_EQ(kernels::ToFloat(c[0]), 1);
}

TEST(CpuBackend, FreshMemoryIsAlignedAndNanInEveryType) {
  const auto backend = MakeCpuBackend();
  for (const int64_t bytes : {0, 1, 63, 64, 65, 4096}) {
    const Storage storage = backend->Allocate(bytes, MemoryCategory::kActivations);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage.data()) % 64, 0u);
    for (int64_t i = 0; i + 8 <= bytes; i += 8) {
      EXPECT_TRUE(std::isnan(*reinterpret_cast<const double*>(storage.data() + i)));
      EXPECT_TRUE(std::isnan(*reinterpret_cast<const float*>(storage.data() + i)));
      EXPECT_TRUE(std::isnan(kernels::ToFloat(*reinterpret_cast<const BFloat16*>(storage.data() + i))));
    }
  }
}

TEST(CpuBackend, RefusesShapesBatchesTypesAndNarrowAccumulation) {
  const auto backend = MakeCpuBackend();
  float m[64] = {};
  const auto f32 = [&](int64_t rows, int64_t cols, int64_t batch = 1) {
    return DenseMatrices(m, DType::kF32, rows, cols, batch);
  };
  const Matrices narrow = DenseMatrices(m, DType::kBF16, 2, 2);
  EXPECT_THROW(backend->MatMul(f32(2, 3), f32(2, 2), f32(2, 2), WriteMode::kAssign), contract::Error);
  EXPECT_THROW(backend->MatMul(f32(2, 2, 2), f32(2, 2), f32(2, 2, 2), WriteMode::kAssign), contract::Error);
  EXPECT_THROW(backend->MatMul(f32(2, 2), narrow, f32(2, 2), WriteMode::kAssign), contract::Error);
  EXPECT_THROW(backend->MatMul(narrow, narrow, narrow, WriteMode::kAccumulate), contract::Error);
  EXPECT_THROW(backend->MatMul(f32(2, 2), f32(2, 2), DenseMatrices(m, DType::kF64, 2, 2), WriteMode::kAssign),
               contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
