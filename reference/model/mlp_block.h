// SPDX-License-Identifier: Apache-2.0
// The second half of a layer and its adjoint, docs/exact-family.md:
//   h = F(x)   r = max(F(h Wu), 0)   x' = x + drop(F(r Wd))
#pragma once

#include <cstdint>
#include <optional>

#include "reference/model/model_tensors.h"
#include "reference/model/step_context.h"
#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

// What the backward needs again. N tokens, d width, f hidden.
struct MlpTape {
  Matrix x;                    // [N, d]  the stream before the MLP
  Matrix h;                    // [N, d]  F(x)
  Matrix up;                   // [N, f]  h Wu
  Matrix activated;            // [N, f]  F(h Wu)
  Matrix r;                    // [N, f]  max(F(h Wu), 0)
  Matrix down;                 // [N, d]  r Wd
  std::optional<Matrix> mask;  // [N, d]
  Matrix out;                  // [N, d]  the stream after the MLP
};

MlpTape MlpForward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights, const Matrix& x);

// dx [N, d] of the stream after the MLP → dx [N, d] of the stream before it. Sets dWu and dWd.
Matrix MlpBackward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights, const MlpTape& tape,
                   const Matrix& dx, LayerTensors<Sum>& gradients);

}  // namespace plumbline::reference
