// SPDX-License-Identifier: Apache-2.0
#include "conformance/engines/torch_eager/storage_type.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/contract/error.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::DType;

struct Types {
  DType storage;
  at::ScalarType stored, wide;
};
constexpr Types kTypes[] = {{DType::kF64, at::kDouble, at::kDouble},
                            {DType::kF32, at::kFloat, at::kFloat},
                            {DType::kBF16, at::kBFloat16, at::kFloat},
                            {DType::kF16, at::kHalf, at::kFloat}};

TEST(StorageType, HasAWideTypeThatIsFp32AtLeast) {
  for (const Types& types : kTypes) {
    const at::Tensor stored = ToStorage(at::full({3}, 1.0 / 3), types.storage);
    EXPECT_EQ(stored.scalar_type(), types.stored);
    EXPECT_EQ(ToWide(stored, types.storage).scalar_type(), types.wide);
    EXPECT_EQ(ToWide(stored).scalar_type(), types.wide);
    EXPECT_TRUE(ToWide(stored).to(types.stored).equal(stored)) << "wide holds what storage holds";
  }
}

TEST(LibTorchVersion, IsANumberWithDots) {
  EXPECT_THAT(LibTorchVersion(), testing::MatchesRegex("[0-9]+.[0-9]+.[0-9]+.*"));
}

TEST(StorageType, IsReachedByACopySoThatAnUpdateOfMastersLeavesWeightsAlone) {
  for (const Types& types : kTypes) {
    const at::Tensor x = at::full({3}, 2.0, at::TensorOptions().dtype(types.stored));
    for (const at::Tensor& copy : {ToStorage(x, types.storage), ToWide(x, types.storage)}) {
      EXPECT_NE(copy.const_data_ptr(), x.const_data_ptr());
    }
  }
}

TEST(StorageType, OfAnotherKindIsUnsupported) {
  for (DType type : {DType::kU16, DType::kI32, DType::kI64, DType::kU8}) {
    try {
      ToStorage(at::full({1}, 1.0), type);
      ADD_FAILURE() << "was not refused: " << contract::Name(type);
    } catch (const contract::Error& error) {
      EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported);
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
