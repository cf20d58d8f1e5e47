// SPDX-License-Identifier: Apache-2.0
// The first half of a layer and its adjoint, docs/exact-family.md:
//   h = F(x)   q = F(h Wq)   k = F(h Wk)   v = F(h Wv)   o = heads(q, k, v)   x' = x + drop(F(o Wo))
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/model/model_tensors.h"
#include "reference/model/step_context.h"
#include "reference/ops/attention.h"
#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// What the backward needs again. N tokens, d width, e key/value width.
struct AttentionTape {
  Matrix x;                                   // [N, d]  the stream before the attention
  Matrix h;                                   // [N, d]  F(x)
  Matrix zq, zk, zv;                          // [N, d], [N, e], [N, e]  h Wq, h Wk, h Wv
  Matrix q, k, v;                             // [N, d], [N, e], [N, e]  their folds
  std::vector<AttentionForwardResult> heads;  // [samples · heads]
  Matrix o;                                   // [N, d]  joined heads
  Matrix zo;                                  // [N, d]  o Wo
  std::optional<Matrix> mask;                 // [N, d]
  Matrix out;                                 // [N, d]  the stream after the attention
};

AttentionTape AttentionBlockForward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights,
                                    const Matrix& x);

// dx [N, d] of the stream after the attention → dx [N, d] of the stream before it. Sets dWq, dWk, dWv and dWo.
Matrix AttentionBlockBackward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights,
                              const AttentionTape& tape, const Matrix& dx, LayerTensors<Sum>& gradients);

}  // namespace plumbline::reference
