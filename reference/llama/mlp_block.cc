// SPDX-License-Identifier: Apache-2.0
// Implements mlp_block.h.
#include "reference/llama/mlp_block.h"

#include "reference/ops/matmul.h"
#include "reference/ops/sum.h"
#include "reference/ops/swiglu.h"

namespace plumbline::reference::llama {

MlpTape MlpForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x) {
  MlpTape tape;
  tape.norm = RmsNormForward(x, weights.norm2, step.spec.norm_epsilon);
  tape.gate = MatMul(tape.norm.y, weights.gate).value;
  tape.up = MatMul(tape.norm.y, weights.up).value;
  tape.gated = SwiGluForward(tape.gate, tape.up);
  const Matrix y = MatMul(tape.gated, weights.down).value;
  tape.mask = step.StreamMask(contract::Site::kDropoutMlpOut, layer, x.rows());
  tape.out = Add(x, step.Drop(y, tape.mask)).value;
  return tape;
}

Matrix MlpBackward(const StepContext& step, const LayerTensors& weights, const MlpTape& tape, const Matrix& dx,
                   LayerTensors& gradients) {
  // dy = drop₃(dx)      dgated = dy Wdownᵀ
  const Matrix dy = step.Drop(dx, tape.mask);
  gradients.down = MatMul(Transpose(tape.gated), dy).value;
  const Matrix dgated = MatMul(dy, Transpose(weights.down)).value;

  // dWgate = hᵀ dgate   dWup = hᵀ dup      dh = dgate Wgateᵀ + dup Wupᵀ
  const SwiGluBackwardResult inner = SwiGluBackward(dgated, tape.gate, tape.up);
  gradients.gate = MatMul(Transpose(tape.norm.y), inner.dgate).value;
  gradients.up = MatMul(Transpose(tape.norm.y), inner.dup).value;
  Sum dh = MatMul(inner.dgate, Transpose(weights.gate));
  dh += MatMul(inner.dup, Transpose(weights.up));

  // dx = dx + RMS'(dh)
  const RmsNormBackwardResult norm = RmsNormBackward(dh.value, weights.norm2, tape.norm);
  gradients.norm2 = norm.dweight;
  return Add(dx, norm.dx).value;
}

}  // namespace plumbline::reference::llama
