// SPDX-License-Identifier: Apache-2.0
// Implements attention_block.h.
#include "reference/llama/attention_block.h"

#include "reference/ops/block.h"
#include "reference/ops/matmul.h"
#include "reference/ops/rotary.h"
#include "reference/ops/sum.h"

namespace plumbline::reference::llama {
namespace {

// The rows of a sample and the channels of a head: a query head in [N, d], a key/value head in [N, e].
Block HeadBlock(const contract::LlamaSpec& spec, int64_t sample, int64_t head) {
  return {sample * spec.positions, head * spec.head_width(), spec.positions, spec.head_width()};
}

// j = floor(i · K / H)
int64_t KvHeadOf(const contract::LlamaSpec& spec, int64_t head) { return head * spec.kv_heads / spec.heads; }

RotaryShape RotaryOf(const contract::LlamaSpec& spec) { return {spec.positions, spec.head_width(), spec.rope_theta}; }

// Of all heads of all samples.
struct Projections {
  Matrix q, k, v;  // [N, d], [N, e], [N, e]  q and k are turned; or their gradients
};

Projections Project(const contract::LlamaSpec& spec, const LayerTensors& weights, const Matrix& h) {
  return {RotaryForward(MatMul(h, weights.q).value, RotaryOf(spec)),
          RotaryForward(MatMul(h, weights.k).value, RotaryOf(spec)), MatMul(h, weights.v).value};
}

HeadTape HeadForward(const StepContext& step, int64_t layer, const Projections& all, int64_t sample, int64_t head) {
  const Block query = HeadBlock(step.spec, sample, head);
  const Block key_value = HeadBlock(step.spec, sample, KvHeadOf(step.spec, head));
  HeadTape tape;
  tape.q = Take(all.q, query);
  tape.k = Take(all.k, key_value);
  tape.v = Take(all.v, key_value);
  tape.mask = step.ScoresMask(layer, sample, head);
  tape.forward = SoftmaxAttentionForward(tape.q, tape.k, tape.v, tape.mask, step.spec.dropout);
  return tape;
}

// The block of `into` becomes its sum with the part.
void AddTo(const Matrix& part, const Block& block, Matrix& into) {
  Put(Add(Take(into, block), part).value, block, into);
}

// dq, dk and dv of all heads of all samples; those of a key/value head are sums over the query heads that share it.
//   dout [N, d]
Projections HeadsBackward(const StepContext& step, const AttentionTape& tape, const Matrix& dout) {
  const contract::LlamaSpec& spec = step.spec;
  Projections gradient{Matrix(dout.rows(), spec.width), Matrix(dout.rows(), spec.kv_width()),
                       Matrix(dout.rows(), spec.kv_width())};
  for (int64_t sample = 0; sample < dout.rows() / spec.positions; ++sample) {
    for (int64_t head = 0; head < spec.heads; ++head) {
      const Block query = HeadBlock(spec, sample, head);
      const Block key_value = HeadBlock(spec, sample, KvHeadOf(spec, head));
      const HeadTape& entry = tape.heads[static_cast<size_t>(sample * spec.heads + head)];
      const SoftmaxAttentionBackwardResult result = SoftmaxAttentionBackward(
          Take(dout, query), entry.q, entry.k, entry.v, entry.mask, spec.dropout, entry.forward);
      Put(result.dq, query, gradient.q);
      AddTo(result.dk, key_value, gradient.k);
      AddTo(result.dv, key_value, gradient.v);
    }
  }
  return gradient;
}

}  // namespace

AttentionTape AttentionForward(const StepContext& step, int64_t layer, const LayerTensors& weights, const Matrix& x) {
  const contract::LlamaSpec& spec = step.spec;
  AttentionTape tape;
  tape.norm = RmsNormForward(x, weights.norm1, spec.norm_epsilon);
  const Projections all = Project(spec, weights, tape.norm.y);
  tape.o = Matrix(x.rows(), spec.width);
  for (int64_t sample = 0; sample < x.rows() / spec.positions; ++sample) {
    for (int64_t head = 0; head < spec.heads; ++head) {
      tape.heads.push_back(HeadForward(step, layer, all, sample, head));
      Put(tape.heads.back().forward.out, HeadBlock(spec, sample, head), tape.o);
    }
  }
  const Matrix y = MatMul(tape.o, weights.out).value;
  tape.mask = step.StreamMask(contract::Site::kDropoutAttentionOut, layer, x.rows());
  tape.out = Add(x, step.Drop(y, tape.mask)).value;
  return tape;
}

Matrix AttentionBackward(const StepContext& step, const LayerTensors& weights, const AttentionTape& tape,
                         const Matrix& dx, LayerTensors& gradients) {
  // dy = drop₂(dx)      do = dy Woutᵀ
  const Matrix dy = step.Drop(dx, tape.mask);
  gradients.out = MatMul(Transpose(tape.o), dy).value;
  const Projections turned = HeadsBackward(step, tape, MatMul(dy, Transpose(weights.out)).value);

  // Of h Wq, h Wk and h Wv.
  const Matrix dq = RotaryBackward(turned.q, RotaryOf(step.spec));
  const Matrix dk = RotaryBackward(turned.k, RotaryOf(step.spec));
  const Matrix& dv = turned.v;

  // dWq = hᵀ dq   dWk = hᵀ dk   dWv = hᵀ dv      dh = dq Wqᵀ + dk Wkᵀ + dv Wvᵀ
  const Matrix h_transposed = Transpose(tape.norm.y);
  gradients.q = MatMul(h_transposed, dq).value;
  gradients.k = MatMul(h_transposed, dk).value;
  gradients.v = MatMul(h_transposed, dv).value;
  Sum dh = MatMul(dq, Transpose(weights.q));
  dh += MatMul(dk, Transpose(weights.k));
  dh += MatMul(dv, Transpose(weights.v));

  // dx = dx + RMS'(dh)
  const RmsNormBackwardResult norm = RmsNormBackward(dh.value, weights.norm1, tape.norm);
  gradients.norm1 = norm.dweight;
  return Add(dx, norm.dx).value;
}

}  // namespace plumbline::reference::llama
