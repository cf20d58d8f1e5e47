// SPDX-License-Identifier: Apache-2.0
// Matrix products of all families, whose sums are of fp32 (fp64 for fp64) in every storage type, in the forward pass
// and in the backward pass that autograd derives. LibTorch's headers stay in .cc files, hence the declaration of
// at::Tensor here. Source: docs/semantics.md, "bf16", "fp16".
#pragma once

namespace at {
class Tensor;
}

namespace plumbline::conformance::torch_eager {

// a b, in the common type of both. Sums are made in fp32 (fp64) and rounded once, in the forward and the backward pass.
// Products of fp16 are made of fp32 copies: ATen has a loop of its own for fp16 where the processor does not know the
// type. On such a machine that loop summed in fp32 too, but took 5 to 33 times as long as fp32 (2048 x 64 by 64 x 256,
// 256 x 1024 by 1024 x 256, both with and without a transpose), and what another processor's fp16 sums in need not be
// asked.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b);

// x W + b, rounded like a product.
//   x     [..., in]   storage
//   W     [in, out]   storage
//   b     [out]       storage
at::Tensor BiasedProduct(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plumbline::conformance::torch_eager
