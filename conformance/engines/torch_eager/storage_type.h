// SPDX-License-Identifier: Apache-2.0
// The two types that a run computes in: the storage type of weights and activations, and the wide type of sums,
// gradients and master weights, which is fp64 where storage is fp64, else fp32. Autograd sees these conversions. The
// only place where a type of the contract becomes one of LibTorch; no header of LibTorch is needed to use it.
// Also, since few files include LibTorch, its version.
#pragma once

#include <string>

#include "conformance/contract/dtype.h"

namespace at {
class Tensor;
}

namespace plumbline::conformance::torch_eager {

// A copy of x in storage type. Unsupported unless that is F64, F32, BF16 or F16.
at::Tensor ToStorage(const at::Tensor& x, contract::DType storage);

// A copy of x in the wide type of this storage type.
at::Tensor ToWide(const at::Tensor& x, contract::DType storage);

// x in the wide type of its own type; x itself if that is it.
at::Tensor ToWide(const at::Tensor& x);

// Of the LibTorch that this was compiled with, "2.11.0".
std::string LibTorchVersion();

}  // namespace plumbline::conformance::torch_eager
