// SPDX-License-Identifier: Apache-2.0
// Implements attention_block.h.
#include "reference/gpt2/attention_block.h"

#include "reference/ops/block.h"
#include "reference/ops/linear.h"
#include "reference/ops/sum.h"

namespace plumbline::reference::gpt2 {
namespace {

// The three parts of [q | k | v].
enum Part { kQ = 0, kK = 1, kV = 2 };

// The rows of a sample and the channels of a head, in [N, d].
Block HeadBlock(const contract::Gpt2Spec& spec, int64_t sample, int64_t head) {
  return {sample * spec.positions, head * spec.head_width(), spec.positions, spec.head_width()};
}

// The same in one part of [q | k | v], [N, 3d].
Block PartBlock(const contract::Gpt2Spec& spec, int64_t sample, int64_t head, Part part) {
  Block block = HeadBlock(spec, sample, head);
  block.col += part * spec.width;
  return block;
}

HeadTape HeadForward(const StepContext& step, int64_t layer, const Matrix& qkv, int64_t sample, int64_t head) {
  HeadTape tape;
  tape.q = Take(qkv, PartBlock(step.spec, sample, head, kQ));
  tape.k = Take(qkv, PartBlock(step.spec, sample, head, kK));
  tape.v = Take(qkv, PartBlock(step.spec, sample, head, kV));
  tape.mask = step.ScoresMask(layer, sample, head);
  tape.forward = SoftmaxAttentionForward(tape.q, tape.k, tape.v, tape.mask, step.spec.dropout);
  return tape;
}

// [dq | dk | dv] of all heads of all samples.   dout [N, d] → [N, 3d]
Matrix HeadsBackward(const StepContext& step, const AttentionTape& tape, const Matrix& dout) {
  const contract::Gpt2Spec& spec = step.spec;
  Matrix dqkv(dout.rows(), 3 * spec.width);
  for (int64_t sample = 0; sample < dout.rows() / spec.positions; ++sample) {
    for (int64_t head = 0; head < spec.heads; ++head) {
      const HeadTape& entry = tape.heads[static_cast<size_t>(sample * spec.heads + head)];
      const SoftmaxAttentionBackwardResult result =
          SoftmaxAttentionBackward(Take(dout, HeadBlock(spec, sample, head)), entry.q, entry.k, entry.v, entry.mask,
                                   spec.dropout, entry.forward);
      Put(result.dq, PartBlock(spec, sample, head, kQ), dqkv);
      Put(result.dk, PartBlock(spec, sample, head, kK), dqkv);
      Put(result.dv, PartBlock(spec, sample, head, kV), dqkv);
    }
  }
  return dqkv;
}

}  // namespace

AttentionTape AttentionForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x) {
  const contract::Gpt2Spec& spec = step.spec;
  AttentionTape tape;
  tape.norm = LayerNormForward(x, weights.norm1.weight, weights.norm1.bias, spec.norm_epsilon);
  const Matrix qkv = LinearForward(tape.norm.y, weights.qkv.weight, weights.qkv.bias);
  tape.o = Matrix(x.rows(), spec.width);
  for (int64_t sample = 0; sample < x.rows() / spec.positions; ++sample) {
    for (int64_t head = 0; head < spec.heads; ++head) {
      tape.heads.push_back(HeadForward(step, layer, qkv, sample, head));
      Put(tape.heads.back().forward.out, HeadBlock(spec, sample, head), tape.o);
    }
  }
  const Matrix y = LinearForward(tape.o, weights.out.weight, weights.out.bias);
  tape.mask = step.StreamMask(contract::Site::kDropoutAttentionOut, layer, x.rows());
  tape.out = Add(x, step.Drop(y, tape.mask)).value;
  return tape;
}

Matrix AttentionBackward(const StepContext& step, const LayerTensors& weights, const AttentionTape& tape,
                         const Matrix& dx, LayerTensors& gradients) {
  // dy = drop₂(dx)      do = dy Woutᵀ
  const LinearBackwardResult out = LinearBackward(step.Drop(dx, tape.mask), tape.o, weights.out.weight);
  gradients.out = {out.dweight, out.dbias};

  // dh = [dq | dk | dv] Wqkvᵀ
  const LinearBackwardResult qkv = LinearBackward(HeadsBackward(step, tape, out.dx), tape.norm.y, weights.qkv.weight);
  gradients.qkv = {qkv.dweight, qkv.dbias};

  // dx = dx + LN'(dh)
  const LayerNormBackwardResult norm = LayerNormBackward(qkv.dx, weights.norm1.weight, tape.norm);
  gradients.norm1 = {norm.dweight, norm.dbias};
  return Add(dx, norm.dx).value;
}

}  // namespace plumbline::reference::gpt2
