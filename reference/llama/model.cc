// SPDX-License-Identifier: Apache-2.0
// Implements model.h.
#include "reference/llama/model.h"

#include "reference/ops/embedding.h"
#include "reference/ops/matmul.h"

namespace plumbline::reference::llama {
namespace {

// dlogits [N, V] → dx [N, d] of the stream before the last norm. Sets the gradients of the norm and of the head.
Matrix HeadBackward(const ModelTensors& weights, const Matrix& dlogits, const ModelTape& tape,
                    ModelTensors& gradients) {
  gradients.head = MatMul(Transpose(dlogits), tape.norm.y).value;
  const Matrix dh = MatMul(dlogits, weights.head).value;
  const RmsNormBackwardResult norm = RmsNormBackward(dh, weights.norm, tape.norm);
  gradients.norm = norm.dweight;
  return norm.dx;
}

}  // namespace

ModelTape ModelForward(const StepContext& step, const ModelTensors& weights, const StepBatch& batch) {
  ModelTape tape;
  const Matrix embedded = TokenEmbeddingForward(weights.embed, batch.tokens);
  tape.mask = step.StreamMask(contract::Site::kDropoutEmbedding, 0, embedded.rows());
  Matrix x = step.Drop(embedded, tape.mask);
  for (int64_t layer = 0; layer < step.spec.layers; ++layer) {
    const LayerTensors& layer_weights = weights.layers[static_cast<size_t>(layer)];
    tape.attention.push_back(AttentionForward(step, layer, layer_weights, x));
    tape.mlp.push_back(MlpForward(step, layer, layer_weights, tape.attention.back().out));
    x = tape.mlp.back().out;
  }
  tape.norm = RmsNormForward(x, weights.norm, step.spec.norm_epsilon);
  const Matrix logits = MatMul(tape.norm.y, Transpose(weights.head)).value;
  tape.loss = CrossEntropyForward(logits, batch.labels, batch.loss_weights);
  return tape;
}

ModelTensors ModelBackward(const StepContext& step, const ModelTensors& weights, const StepBatch& batch,
                           const ModelTape& tape) {
  ModelTensors gradients = TensorsFor(step.spec);
  const Matrix dlogits = CrossEntropyBackward(tape.loss, batch.labels, batch.loss_weights);
  Matrix dx = HeadBackward(weights, dlogits, tape, gradients);
  for (int64_t layer = step.spec.layers - 1; layer >= 0; --layer) {
    const auto l = static_cast<size_t>(layer);
    dx = MlpBackward(step, weights.layers[l], tape.mlp[l], dx, gradients.layers[l]);
    dx = AttentionBackward(step, weights.layers[l], tape.attention[l], dx, gradients.layers[l]);
  }
  gradients.embed = TokenEmbeddingBackward(step.Drop(dx, tape.mask), batch.tokens, step.spec.vocab).value;
  if (weights.unused) gradients.unused = Matrix(weights.unused->rows(), weights.unused->cols());
  return gradients;
}

}  // namespace plumbline::reference::llama
