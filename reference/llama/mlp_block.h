// SPDX-License-Identifier: Apache-2.0
// The second half of a layer and its adjoint, docs/semantics.md:
//   h = RMS(x; norm2)   x' = x + drop₃((silu(h Wgate) ⊙ h Wup) Wdown)
#pragma once

#include <cstdint>
#include <optional>

#include "reference/llama/step_context.h"
#include "reference/llama/tensors.h"
#include "reference/ops/matrix.h"
#include "reference/ops/rms_norm.h"

namespace plumbline::reference::llama {

// What the backward needs again. N tokens, d width, f hidden.
struct MlpTape {
  RmsNormForwardResult norm;   // h is norm.y  [N, d]
  Matrix gate, up;             // [N, f]  h Wgate, h Wup
  Matrix gated;                // [N, f]  silu(h Wgate) ⊙ h Wup
  std::optional<Matrix> mask;  // [N, d]
  Matrix out;                  // [N, d]  the stream after the MLP
};

// x [N, d], the stream before the MLP
MlpTape MlpForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x);

// dx [N, d] of the stream after the MLP → dx [N, d] of the stream before it. Sets the gradients of norm2, gate, up and
// down.
Matrix MlpBackward(const StepContext& step, const LayerTensors& weights, const MlpTape& tape, const Matrix& dx,
                   LayerTensors& gradients);

}  // namespace plumbline::reference::llama
