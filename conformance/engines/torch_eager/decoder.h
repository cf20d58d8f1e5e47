// SPDX-License-Identifier: Apache-2.0
// The model of family `exact` in LibTorch: its forward pass, from which autograd derives the backward pass, and the
// three autograd Functions it needs beyond plain ATen. Not for shards or micro-batches: it takes the whole global
// batch. Storage is the type of activations (fp64, fp32, bf16, fp16); wide is that of parameters and their gradients
// (fp64 for fp64, else fp32). LibTorch's headers stay in .cc files, hence the declaration of at::Tensor here. Source:
// docs/exact-family.md, "Forward".
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/dtype.h"
#include "conformance/contract/model_spec.h"

namespace at {
class Tensor;
}

namespace plumbline::conformance::torch_eager {

// y = fold(x; bound), elementwise, same shape and type as x. Derivative: +1 where (x + bound) mod 4 bound < 2 bound,
// else -1, so the kink has slope -1. Computed in wide, since in bf16 neither x + bound nor numbers above 256 are exact.
// Exact if x holds integers with |x| + bound < 2^24 (fp64: 2^53).
at::Tensor Fold(const at::Tensor& x, int64_t bound);

// y = x; the gradient that arrives, summed by autograd over all uses of y, is folded: dx = fold(dy; bound).
at::Tensor GradientFold(const at::Tensor& x, int64_t bound);

// y [..., out] = x [..., in] weight [in, out], with the weight converted to the type of x.
//   x       storage
//   weight  wide, integers that storage holds
//   y       storage
// dx has the type of x. dweight is wide and is a product of wide copies: it never passes through storage, which could
// not hold it. x may be a wide tensor, then all of it is wide.
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight);

class Decoder {
 public:
  // Gradient folds are those of the loss times `loss_scale`, which storage then has to hold: who asks autograd for
  // gradients begins with that factor, and divides what comes out by it.
  // `folds` off replaces every fold and gradient fold by the identity. What is left is an ordinary differentiable
  // function, whose gradients a test can compare with finite differences; it is not the family.
  Decoder(const contract::ExactSpec& spec, contract::DType storage, int64_t loss_scale, bool folds = true);

  // The loss itself, not scaled, fp64, ready for autograd.
  //   parameters                     wide, in canonical order
  //   tokens, labels, loss_weights   int64 [B, T], one step's global batch
  //   twice_masks                    2 · mask, [B, T, d]: of layer l after Wo at 2l, after Wd at 2l + 1; empty without
  //   dropout
  at::Tensor Loss(const std::vector<at::Tensor>& parameters, const at::Tensor& tokens, const at::Tensor& labels,
                  const at::Tensor& loss_weights, const std::vector<at::Tensor>& twice_masks) const;

 private:
  at::Tensor F(const at::Tensor& x) const;
  at::Tensor G(const at::Tensor& x) const;
  at::Tensor Embed(const at::Tensor& embed_vd, const at::Tensor& position_td, const at::Tensor& tokens_bt) const;
  at::Tensor Attention(const at::Tensor& input_btd, const at::Tensor* weights, const at::Tensor* twice_mask) const;
  at::Tensor Heads(const at::Tensor& q_btd, const at::Tensor& k_bte, const at::Tensor& v_bte) const;
  at::Tensor Causal(int64_t group, int64_t positions) const;
  at::Tensor Mlp(const at::Tensor& input_btd, const at::Tensor* weights, const at::Tensor* twice_mask) const;
  at::Tensor Head(const at::Tensor& x_btd, const at::Tensor& embed_vd) const;

  contract::ExactSpec spec_;
  contract::DType storage_;
  int64_t scaled_gradient_bound_;
  bool folds_;
};

}  // namespace plumbline::conformance::torch_eager
