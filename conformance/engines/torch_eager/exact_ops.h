// SPDX-License-Identifier: Apache-2.0
// What the exact family needs beyond plain ATen: the two folds and the projection as autograd Functions, and the
// modular optimizers. Everything else of the model is ATen with its own derivatives (decoder.h). Storage is the type of
// activations (fp64, fp32, bf16); wide is the type of parameters and their gradients (fp64, fp32). A fold computes in
// wide: in bf16 neither x + bound nor a modulus above 256 is exact. Source: docs/exact-family.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace plumbline::conformance::torch_eager {

// fp64 for fp64, else fp32.
at::ScalarType WideType(at::ScalarType storage);

// y = fold(x; bound), elementwise, same shape and type as x. Derivative: +1 where (x + bound) mod 4 bound < 2 bound,
// else -1, so the kink has slope -1. Exact if x holds integers with |x| + bound < 2^24 (fp64: 2^53).
at::Tensor Fold(const at::Tensor& x, int64_t bound);

// y = x; the gradient that arrives, summed by autograd over all uses of y, is folded: dx = fold(dy; bound).
at::Tensor GradientFold(const at::Tensor& x, int64_t bound);

// y [..., out] = x [..., in] weight [in, out], with the weight rounded to the type of x.
//   x       storage
//   weight  wide, integers that storage holds
//   y       storage
// dx has the type of x. dweight is wide and is a product of wide copies: it never passes through storage, which could
// not hold it. The products sum in fp32 (fp64) inside ATen; x may be a wide tensor, then all of it is wide.
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight);

// One parameter's update in int64: returns (moment, master) after the step of number `counter` (1 in the first step).
// Source: docs/exact-family.md, "Optimizers".
std::pair<at::Tensor, at::Tensor> ModularMomentum(const at::Tensor& gradient, const at::Tensor& moment,
                                                  const at::Tensor& master, int64_t counter, int64_t modulus);
at::Tensor ModularSgd(const at::Tensor& gradient, const at::Tensor& master, int64_t modulus);

// W = floor(U / 8) - bound.
at::Tensor WorkingWeight(const at::Tensor& master, int64_t weight_bound);

}  // namespace plumbline::conformance::torch_eager
