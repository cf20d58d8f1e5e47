// SPDX-License-Identifier: Apache-2.0
// Implements exact_model.h.
#include "reference/model/exact_model.h"

#include "reference/ops/embedding.h"
#include "reference/ops/matmul.h"

namespace plumbline::reference {

ModelTape ModelForward(const StepContext& step, const ModelTensors<Matrix>& weights, const StepBatch& batch) {
  ModelTape tape;
  Matrix x = step.Activation(EmbeddingForward(weights.embed, weights.pos, batch.tokens), {.name = "embedding"});
  for (int64_t layer = 0; layer < step.spec.layers; ++layer) {
    const LayerTensors<Matrix>& layer_weights = weights.layers[static_cast<size_t>(layer)];
    tape.attention.push_back(AttentionBlockForward(step, layer, layer_weights, x));
    tape.mlp.push_back(MlpForward(step, layer, layer_weights, tape.attention.back().out));
    x = tape.mlp.back().out;
  }
  tape.x = x;
  tape.h = step.F(tape.x, {.name = "head.input"});
  const Matrix logits = step.Activation(MatMul(tape.h, Transpose(weights.embed)), {.name = "head.logits"});
  tape.loss = LossForward(logits, batch.labels, batch.loss_weights);
  return tape;
}

ModelTensors<Sum> ModelBackward(const StepContext& step, const ModelTensors<Matrix>& weights, const StepBatch& batch,
                                const ModelTape& tape) {
  ModelTensors<Sum> gradients;
  gradients.layers.resize(static_cast<size_t>(step.spec.layers));

  // dE = dlogitsᵀ h      dx = G(dlogits E) ⊙ S(x)
  const Matrix dlogits = LossBackward(tape.loss, batch.labels, batch.loss_weights, step.spec.vocab);
  step.recorder.Stored(dlogits, {.name = "head.logits gradient"});
  gradients.embed = MatMul(Transpose(dlogits), tape.h);
  const Matrix dh = step.Activation(MatMul(dlogits, weights.embed), {.name = "head.input gradient"});
  Matrix dx = Hadamard(step.G(dh, {.name = "head.input gradient"}), step.S(tape.x));

  for (int64_t layer = step.spec.layers - 1; layer >= 0; --layer) {
    const auto l = static_cast<size_t>(layer);
    dx = MlpBackward(step, layer, weights.layers[l], tape.mlp[l], dx, gradients.layers[l]);
    dx = AttentionBlockBackward(step, layer, weights.layers[l], tape.attention[l], dx, gradients.layers[l]);
  }

  // dE[token] += dx      dP[position] += dx
  gradients.embed += TokenEmbeddingBackward(dx, batch.tokens, step.spec.vocab);
  gradients.pos = PositionEmbeddingBackward(dx, step.spec.positions);
  return gradients;
}

}  // namespace plumbline::reference
