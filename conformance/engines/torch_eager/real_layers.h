// SPDX-License-Identifier: Apache-2.0
// What the models of the real families are made of beyond single calls of LibTorch. Every function is differentiable
// by autograd and repeats its bits. Types: storage (fp64, fp32, bf16, fp16) is that of weights and activations, wide is
// fp64 for fp64, else fp32. LibTorch's headers stay in .cc files, hence the declaration of at::Tensor here. Shapes: b
// sample, t position, d width, h head, c channel of a head, v vocabulary. Source: docs/semantics.md, "Family gpt2",
// "Family llama", "bf16", "fp16".
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"

namespace at {
class Tensor;
}

namespace plumbline::conformance::torch_eager {

// The masks of one forward pass: 1 where an element is kept, else 0, in storage type. Empty vectors where there is no
// dropout.
struct DropMasks {
  std::vector<at::Tensor> embedding;      // one: [B, T, d]
  std::vector<at::Tensor> scores;         // by layer: [B, H, T, T]
  std::vector<at::Tensor> attention_out;  // by layer: [B, T, d]
  std::vector<at::Tensor> mlp_out;        // by layer: [B, T, d]
};

// y ⊙ masks[index] / (1 - p), of y's shape and type; y itself without masks.
at::Tensor Drop(const at::Tensor& y, const std::vector<at::Tensor>& masks, int64_t index, double p);

// rot(y): at position t the channels i and i + D/2 of each head, i < D/2, are a pair that is turned by the angle
// a = t · theta^(-2i/D) to y_i cos a - y_{i+D/2} sin a and y_{i+D/2} cos a + y_i sin a.
//   y        [B, H, T, D]  storage, D even
//   returns  [B, H, T, D]  storage
// Angles, cosines and sines are wide, and so are the products and their sum, which is rounded to storage once.
// Source: Su et al. 2021, eq. 34, with the pairs of Hugging Face's modeling_llama.
at::Tensor Rotated(const at::Tensor& y, double theta);

// A copy of its key/value head for each query head: head i of the result is head floor(i · K / H) of y.
//   y        [B, K, T, D]  storage, K divides num_heads = H
//   returns  [B, H, T, D]  storage
// Source: Ainslie et al. 2023, section 2.2.
at::Tensor ForQueryHeads(const at::Tensor& y, int64_t num_heads);

// Causal attention of one layer: drop₁(softmax(q kᵀ / sqrt(D))) v, the heads side by side again.
//   q, k, v  [B, H, T, D]  storage
//   returns  [B, T, d]     storage
// The softmax is wide; scores, attention weights and results are rounded to storage once each.
at::Tensor CausalAttention(const contract::RealSpec& spec, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const DropMasks& masks, int64_t layer);

// ce = logsumexp(logits) - logits[label] of every token.
//   logits   [B, T, V]  storage
//   labels   [B, T]     int64
//   returns  [B, T]     wide
at::Tensor TokenCrossEntropy(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace plumbline::conformance::torch_eager
