// SPDX-License-Identifier: Apache-2.0
// Implementation of product.h. Autograd sees the conversions: a gradient that arrives is made wide, and what is made of
// it is rounded where the operand was fp16.
#include "conformance/engines/torch_eager/product.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>

#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {

at::Tensor Product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kHalf) return at::matmul(a, b);
  return at::matmul(ToWide(a), ToWide(b)).to(at::kHalf);
}

at::Tensor BiasedProduct(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.scalar_type() != at::kHalf) return at::linear(x, weight.t(), bias);
  return at::linear(ToWide(x), ToWide(weight).t(), ToWide(bias)).to(at::kHalf);
}

}  // namespace plumbline::conformance::torch_eager
