// SPDX-License-Identifier: Apache-2.0
// The models of the real families in LibTorch's own layers: the forward passes, from which autograd derives the
// backward passes. They take samples, whole batch or micro-batch, and know nothing of steps, draws and optimizers. The
// type of the parameters is that of weights and activations: fp64, fp32 or bf16. Source: docs/semantics.md, "Family
// gpt2", "Family llama", "bf16".
#pragma once

#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/engines/torch_eager/real_layers.h"

namespace plumbline::conformance::torch_eager {

// ce = logsumexp(logits) - logits[label] of every token, by the model of the spec's family. Internal for family exact.
//   parameters  canonical order, canonical shapes
//   tokens      int64 [B, T]
//   labels      int64 [B, T]
//   returns     [B, T], fp32 (fp64 if the parameters are), ready for autograd
at::Tensor ModelCrossEntropy(const contract::ModelSpec& model, const std::vector<at::Tensor>& parameters,
                             const at::Tensor& tokens, const at::Tensor& labels, const DropMasks& masks);

}  // namespace plumbline::conformance::torch_eager
