// SPDX-License-Identifier: Apache-2.0
// The first half of a layer and its adjoint, docs/semantics.md:
//   h = LN(x; norm1)   [q | k | v] = h Wqkv + bqkv   o = heads(q, k, v)   x' = x + drop₂(o Wout + bout)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/gpt2/step_context.h"
#include "reference/gpt2/tensors.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/matrix.h"
#include "reference/ops/softmax_attention.h"

namespace plumbline::reference::gpt2 {

// One head of one sample. T positions, D head width.
struct HeadTape {
  Matrix q, k, v;              // [T, D]
  std::optional<Matrix> mask;  // [T, T]
  SoftmaxAttentionForwardResult forward;
};

// What the backward needs again. N tokens, d width.
struct AttentionTape {
  LayerNormForwardResult norm;  // h is norm.y  [N, d]
  std::vector<HeadTape> heads;  // [samples · heads]
  Matrix o;                     // [N, d]  joined heads
  std::optional<Matrix> mask;   // [N, d]
  Matrix out;                   // [N, d]  the stream after the attention
};

// x [N, d], the stream before the attention
AttentionTape AttentionForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x);

// dx [N, d] of the stream after the attention → dx [N, d] of the stream before it. Sets the gradients of norm1, qkv and
// out.
Matrix AttentionBackward(const StepContext& step, const LayerTensors& weights, const AttentionTape& tape,
                         const Matrix& dx, LayerTensors& gradients);

}  // namespace plumbline::reference::gpt2
