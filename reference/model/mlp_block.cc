// SPDX-License-Identifier: Apache-2.0
// Implements mlp_block.h.
#include "reference/model/mlp_block.h"

#include "reference/ops/matmul.h"
#include "reference/ops/relu.h"

namespace plumbline::reference {

MlpTape MlpForward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights, const Matrix& x) {
  MlpTape tape;
  tape.x = x;
  tape.h = step.F(x, {layer, "mlp.input"});
  tape.up = step.Activation(MatMul(tape.h, weights.up), {layer, "mlp.up"});
  tape.activated = step.F(tape.up, {layer, "mlp.up"});
  tape.r = ReluForward(tape.activated);
  tape.down = step.Activation(MatMul(tape.r, weights.down), {layer, "mlp.down"});
  tape.mask = step.Mask(contract::Site::kDropoutMlp, layer, x.rows());
  const Matrix y = Drop(step.F(tape.down, {layer, "mlp.down"}), tape.mask);
  tape.out = step.Activation(Add(x, y), {layer, "mlp.residual"});
  return tape;
}

Matrix MlpBackward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights, const MlpTape& tape,
                   const Matrix& dx, LayerTensors<Sum>& gradients) {
  // dz = drop'(dx) ⊙ S(r Wd)      dWd = rᵀ dz
  const Matrix dz = Hadamard(Drop(dx, tape.mask), step.S(tape.down));
  step.recorder.Stored(dz, {layer, "mlp.down output gradient"});
  gradients.down = MatMul(Transpose(tape.r), dz);

  // du = G(dz Wdᵀ) ⊙ [F(h Wu) > 0] ⊙ S(h Wu)      dWu = hᵀ du
  const Matrix dr = step.Activation(MatMul(dz, Transpose(weights.down)), {layer, "mlp.down input gradient"});
  const Matrix dactivated = ReluBackward(step.G(dr, {layer, "mlp.down input gradient"}), tape.activated);
  const Matrix du = Hadamard(dactivated, step.S(tape.up));
  gradients.up = MatMul(Transpose(tape.h), du);

  // dx = G(dx + G(du Wuᵀ) ⊙ S(x))
  const Matrix dh = step.Activation(MatMul(du, Transpose(weights.up)), {layer, "mlp.up input gradient"});
  const Matrix branch = Hadamard(step.G(dh, {layer, "mlp.up input gradient"}), step.S(tape.x));
  const Matrix stream = step.Activation(Add(dx, branch), {layer, "mlp.residual gradient"});
  return step.G(stream, {layer, "mlp.residual gradient"});
}

}  // namespace plumbline::reference
