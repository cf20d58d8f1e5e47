// SPDX-License-Identifier: Apache-2.0
// Ranges of a flat buffer: bounds, types, and NaN where nobody wrote.
#include "optimized/engine/flat_buffer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/bf16.h"
#include "optimized/backend/cpu_backend.h"

namespace plumbline::optimized {
namespace {

using contract::DType;

TEST(FlatBuffer, WhatIsNotWrittenStaysNanInBothTypes) {
  const auto backend = MakeCpuBackend();
  const FlatBuffer wide(*backend, 96, DType::kF32, MemoryCategory::kWeights);
  const FlatBuffer narrow(*backend, 96, DType::kBF16, MemoryCategory::kWeights);
  for (float& value : wide.Span<float>(32, 5)) value = 1;
  for (auto& value : narrow.Span<kernels::BFloat16>(32, 5)) value = kernels::FromFloat<kernels::BFloat16>(1);
  for (int64_t i = 0; i < 96; ++i) {
    const bool is_written = i >= 32 && i < 37;
    EXPECT_EQ(std::isnan(wide.Span<float>(i, 1)[0]), !is_written);
    EXPECT_EQ(std::isnan(kernels::ToFloat(narrow.Span<kernels::BFloat16>(i, 1)[0])), !is_written);
  }
}

TEST(FlatBuffer, RangesAreAlignedWhereOffsetsAreMultiplesOf32) {
  const auto backend = MakeCpuBackend();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const FlatBuffer buffer(*backend, 320, dtype, MemoryCategory::kWeights);
    for (int64_t offset = 0; offset < 320; offset += 32) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.Range(offset, 32).data) % 64, 0u);
    }
  }
}

TEST(FlatBuffer, RefusesRangesOutsideAndSpansOfAnotherType) {
  const auto backend = MakeCpuBackend();
  const FlatBuffer buffer(*backend, 32, DType::kF32, MemoryCategory::kWeights);
  EXPECT_EQ(buffer.Range(0, 32).size_bytes(), 128);
  EXPECT_THROW(buffer.Range(1, 32), contract::Error);
  EXPECT_THROW(buffer.Range(-1, 2), contract::Error);
  EXPECT_THROW(buffer.Range(3, -1), contract::Error);
  EXPECT_THROW(buffer.Span<kernels::BFloat16>(0, 1), contract::Error);
}

}  // namespace
}  // namespace plumbline::optimized
