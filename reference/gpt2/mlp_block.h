// SPDX-License-Identifier: Apache-2.0
// The second half of a layer and its adjoint, docs/semantics.md:
//   h = LN(x; norm2)   x' = x + drop₃(GELU(h Wup + bup) Wdown + bdown)
#pragma once

#include <cstdint>
#include <optional>

#include "reference/gpt2/step_context.h"
#include "reference/gpt2/tensors.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference::gpt2 {

// What the backward needs again. N tokens, d width, f hidden.
struct MlpTape {
  LayerNormForwardResult norm;  // h is norm.y  [N, d]
  Matrix up;                    // [N, f]  h Wup + bup
  Matrix activated;             // [N, f]  GELU(h Wup + bup)
  std::optional<Matrix> mask;   // [N, d]
  Matrix out;                   // [N, d]  the stream after the MLP
};

// x [N, d], the stream before the MLP
MlpTape MlpForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x);

// dx [N, d] of the stream after the MLP → dx [N, d] of the stream before it. Sets the gradients of norm2, up and down.
Matrix MlpBackward(const StepContext& step, const LayerTensors& weights, const MlpTape& tape, const Matrix& dx,
                   LayerTensors& gradients);

}  // namespace plumbline::reference::gpt2
