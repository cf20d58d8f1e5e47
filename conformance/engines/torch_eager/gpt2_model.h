// SPDX-License-Identifier: Apache-2.0
// The model of family `gpt2` in LibTorch's own layers: its forward pass, from which autograd derives the backward pass.
// It takes samples, whole batch or micro-batch, and knows nothing of steps, draws and optimizers. The type of the
// parameters is that of weights and activations: fp64 (for tests), fp32 or bf16. LibTorch's headers stay in .cc files,
// hence the declaration of at::Tensor here. Source: docs/semantics.md, "Family gpt2".
#pragma once

#include <vector>

#include "conformance/contract/model_spec.h"

namespace at {
class Tensor;
}

namespace plumbline::conformance::torch_eager {

// The masks of one forward pass: 1 where an element is kept, else 0, in the type of the activations. Empty vectors
// where there is no dropout.
struct Gpt2Masks {
  std::vector<at::Tensor> embedding;      // one: [B, T, d]
  std::vector<at::Tensor> scores;         // by layer: [B, H, T, T]
  std::vector<at::Tensor> attention_out;  // by layer: [B, T, d]
  std::vector<at::Tensor> mlp_out;        // by layer: [B, T, d]
};

// ce = logsumexp(logits) - logits[label] of every token.
//   parameters  canonical order, canonical shapes
//   tokens      int64 [B, T]
//   labels      int64 [B, T]
//   returns     [B, T], fp32 (fp64 if the parameters are), ready for autograd
at::Tensor Gpt2CrossEntropy(const contract::Gpt2Spec& spec, const std::vector<at::Tensor>& parameters,
                            const at::Tensor& tokens, const at::Tensor& labels, const Gpt2Masks& masks);

}  // namespace plumbline::conformance::torch_eager
