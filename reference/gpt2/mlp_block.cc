// SPDX-License-Identifier: Apache-2.0
// Implements mlp_block.h.
#include "reference/gpt2/mlp_block.h"

#include "reference/ops/gelu.h"
#include "reference/ops/linear.h"
#include "reference/ops/sum.h"

namespace plumbline::reference::gpt2 {

MlpTape MlpForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x) {
  MlpTape tape;
  tape.norm = LayerNormForward(x, weights.norm2.weight, weights.norm2.bias, step.spec.norm_epsilon);
  tape.up = LinearForward(tape.norm.y, weights.up.weight, weights.up.bias);
  tape.activated = GeluForward(tape.up);
  const Matrix y = LinearForward(tape.activated, weights.down.weight, weights.down.bias);
  tape.mask = step.StreamMask(contract::Site::kDropoutMlpOut, layer, x.rows());
  tape.out = Add(x, step.Drop(y, tape.mask)).value;
  return tape;
}

Matrix MlpBackward(const StepContext& step, const LayerTensors& weights, const MlpTape& tape, const Matrix& dx,
                   LayerTensors& gradients) {
  const LinearBackwardResult down = LinearBackward(step.Drop(dx, tape.mask), tape.activated, weights.down.weight);
  gradients.down = {down.dweight, down.dbias};
  const LinearBackwardResult up = LinearBackward(GeluBackward(down.dx, tape.up), tape.norm.y, weights.up.weight);
  gradients.up = {up.dweight, up.dbias};
  const LayerNormBackwardResult norm = LayerNormBackward(up.dx, weights.norm2.weight, tape.norm);
  gradients.norm2 = {norm.dweight, norm.dbias};
  return Add(dx, norm.dx).value;
}

}  // namespace plumbline::reference::gpt2
