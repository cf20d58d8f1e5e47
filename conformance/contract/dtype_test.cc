// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/dtype.h"

#include <gtest/gtest.h>

namespace plumbline::contract {
namespace {

TEST(DType, HasTheNamesAndSizesOfSafetensors) {
  const struct {
    DType dtype;
    std::string_view name;
    int64_t size_bytes;
  } kTable[] = {{DType::kF64, "F64", 8}, {DType::kF32, "F32", 4}, {DType::kBF16, "BF16", 2}, {DType::kF16, "F16", 2},
                {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4}, {DType::kU16, "U16", 2},   {DType::kU8, "U8", 1}};
  for (const auto& [dtype, name, size_bytes] : kTable) {
    EXPECT_EQ(Name(dtype), name);
    EXPECT_EQ(SizeBytes(dtype), size_bytes) << name;
    EXPECT_EQ(DTypeFromName(name), dtype) << name;
  }
}

TEST(DType, HasNoOtherNames) {
  for (std::string_view name : {"", "f32", "F32 ", "F3", "I8", "BOOL", "F8_E4M3"}) {
    EXPECT_EQ(DTypeFromName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace plumbline::contract
