// SPDX-License-Identifier: Apache-2.0
// The storage types of weights and activations, from the name in a config to the C++ type.
#pragma once

#include <string>

#include "conformance/contract/dtype.h"
#include "conformance/contract/error.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"

namespace plumbline::optimized {

template <typename T>
inline constexpr contract::DType kDTypeOf = contract::DType::kF32;
template <>
inline constexpr contract::DType kDTypeOf<kernels::BFloat16> = contract::DType::kBF16;
template <>
inline constexpr contract::DType kDTypeOf<kernels::Float16> = contract::DType::kF16;

inline bool IsStorageType(contract::DType dtype) {
  return dtype == contract::DType::kF32 || dtype == contract::DType::kBF16 || dtype == contract::DType::kF16;
}

// visit(T{}) with the type of that name. InvalidArgument for one that nothing is stored in.
template <typename Visit>
decltype(auto) VisitStorage(contract::DType dtype, Visit visit) {
  switch (dtype) {
    case contract::DType::kF32:
      return visit(float{});
    case contract::DType::kBF16:
      return visit(kernels::BFloat16{});
    case contract::DType::kF16:
      return visit(kernels::Float16{});
    default:
      contract::Fail(contract::ErrorCode::kInvalidArgument,
                     "storage type is " + std::string(contract::Name(dtype)) + "; allowed: F32, BF16, F16");
  }
}

}  // namespace plumbline::optimized
