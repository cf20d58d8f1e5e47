// SPDX-License-Identifier: Apache-2.0
// See storage_type.h.
#include "conformance/engines/torch_eager/storage_type.h"

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <string>

#include "conformance/contract/error.h"

namespace plumbline::conformance::torch_eager {
namespace {

at::ScalarType ScalarTypeOf(contract::DType dtype) {
  switch (dtype) {
    case contract::DType::kF64:
      return at::kDouble;
    case contract::DType::kF32:
      return at::kFloat;
    case contract::DType::kBF16:
      return at::kBFloat16;
    case contract::DType::kF16:
      return at::kHalf;
    default:
      contract::Fail(contract::ErrorCode::kUnsupported, "torch_eager: storage type " + std::string(Name(dtype)));
  }
}

at::ScalarType WideType(at::ScalarType storage) { return storage == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor CopyTo(const at::Tensor& x, at::ScalarType type) {
  return x.to(type, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

at::Tensor ToStorage(const at::Tensor& x, contract::DType storage) { return CopyTo(x, ScalarTypeOf(storage)); }

at::Tensor ToWide(const at::Tensor& x, contract::DType storage) { return CopyTo(x, WideType(ScalarTypeOf(storage))); }

at::Tensor ToWide(const at::Tensor& x) { return x.to(WideType(x.scalar_type())); }

std::string LibTorchVersion() { return TORCH_VERSION; }

}  // namespace plumbline::conformance::torch_eager
