// SPDX-License-Identifier: Apache-2.0
// The first half of a layer and its adjoint, docs/semantics.md:
//   h = RMS(x; norm1)   q = rot(h Wq)   k = rot(h Wk)   v = h Wv   o = heads(q, k, v)   x' = x + drop₂(o Wout)
// Query head i reads the key/value head floor(i · K / H): consecutive heads share one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/llama/step_context.h"
#include "reference/llama/tensors.h"
#include "reference/ops/matrix.h"
#include "reference/ops/rms_norm.h"
#include "reference/ops/softmax_attention.h"

namespace plumbline::reference::llama {

// One query head of one sample, with its key/value head. T positions, D head width.
struct HeadTape {
  Matrix q, k, v;              // [T, D]  q and k are turned
  std::optional<Matrix> mask;  // [T, T]
  SoftmaxAttentionForwardResult forward;
};

// What the backward needs again. N tokens, d width.
struct AttentionTape {
  RmsNormForwardResult norm;    // h is norm.y  [N, d]
  std::vector<HeadTape> heads;  // [samples · heads]
  Matrix o;                     // [N, d]  joined heads
  std::optional<Matrix> mask;   // [N, d]
  Matrix out;                   // [N, d]  the stream after the attention
};

// x [N, d], the stream before the attention
AttentionTape AttentionForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x);

// dx [N, d] of the stream after the attention → dx [N, d] of the stream before it. Sets the gradients of norm1, q, k, v
// and out.
Matrix AttentionBackward(const StepContext& step, const LayerTensors& weights, const AttentionTape& tape,
                         const Matrix& dx, LayerTensors& gradients);

}  // namespace plumbline::reference::llama
