// SPDX-License-Identifier: Apache-2.0
// Implements attention_block.h.
#include "reference/model/attention_block.h"

#include "reference/ops/block.h"
#include "reference/ops/matmul.h"

namespace plumbline::reference {
namespace {

// The rows of a sample and the channels of a head.
Block HeadBlock(const contract::ExactSpec& spec, int64_t sample, int64_t head) {
  return {sample * spec.positions, head * spec.head_width(), spec.positions, spec.head_width()};
}

// j = floor(i · K / H)
int64_t KvHeadOf(const contract::ExactSpec& spec, int64_t head) { return head * spec.kv_heads / spec.heads; }

size_t HeadIndex(const contract::ExactSpec& spec, int64_t sample, int64_t head) {
  return static_cast<size_t>(sample * spec.heads + head);
}

// All heads of all samples: fills tape.heads and tape.o from q, k and v.
void HeadsForward(const StepContext& step, int64_t layer, AttentionTape& tape) {
  const contract::ExactSpec& spec = step.spec;
  tape.o = Matrix(tape.q.rows(), tape.q.cols());
  for (int64_t sample = 0; sample < tape.q.rows() / spec.positions; ++sample) {
    for (int64_t head = 0; head < spec.heads; ++head) {
      const Block query = HeadBlock(spec, sample, head);
      const Block key_value = HeadBlock(spec, sample, KvHeadOf(spec, head));
      AttentionForwardResult result = AttentionForward(Take(tape.q, query), Take(tape.k, key_value),
                                                       Take(tape.v, key_value), step.folds.activation);
      step.recorder.ActivationSum(result.scores, {layer, "attn.scores"});
      step.recorder.FoldInput(result.scores.value, step.folds.activation, {layer, "attn.scores"});
      step.recorder.ActivationSum(result.mix, {layer, "attn.mix"});
      step.recorder.FoldInput(result.mix.value, step.folds.activation, {layer, "attn.mix"});
      Put(result.out, query, tape.o);
      tape.heads.push_back(std::move(result));
    }
  }
}

struct HeadsGradient {
  Matrix dq, dk, dv;  // [N, d], [N, e], [N, e]  folded
};

// One sample and one key/value head: the sums over the query heads that share it.
void SharedHeadBackward(const StepContext& step, int64_t layer, const AttentionTape& tape, const Matrix& dout,
                        int64_t sample, int64_t kv_head, HeadsGradient& gradient) {
  const contract::ExactSpec& spec = step.spec;
  const Fold& f = step.folds.activation;
  const Fold& g = step.folds.gradient;
  const Block key_value = HeadBlock(spec, sample, kv_head);
  Sum dk(key_value.rows, key_value.cols);
  Sum dv(key_value.rows, key_value.cols);
  for (int64_t head = 0; head < spec.heads; ++head) {
    if (KvHeadOf(spec, head) != kv_head) continue;
    const Block query = HeadBlock(spec, sample, head);
    const AttentionBackwardResult result =
        AttentionBackward(Take(dout, query), Take(tape.q, query), Take(tape.k, key_value), Take(tape.v, key_value),
                          tape.heads[HeadIndex(spec, sample, head)], f, g);
    step.recorder.ActivationSum(result.dweights, {layer, "attn.weights gradient"});
    step.recorder.FoldInput(result.dweights.value, g, {layer, "attn.weights gradient"});
    const Matrix dq = step.Activation(result.dq, {layer, "attn.q gradient"});
    Put(step.G(dq, {layer, "attn.q gradient"}), query, gradient.dq);
    dk += result.dk;
    dv += result.dv;
  }
  const Matrix dk_sum = step.Activation(dk, {layer, "attn.k gradient"});
  const Matrix dv_sum = step.Activation(dv, {layer, "attn.v gradient"});
  Put(step.G(dk_sum, {layer, "attn.k gradient"}), key_value, gradient.dk);
  Put(step.G(dv_sum, {layer, "attn.v gradient"}), key_value, gradient.dv);
}

HeadsGradient HeadsBackward(const StepContext& step, int64_t layer, const AttentionTape& tape, const Matrix& dout) {
  const contract::ExactSpec& spec = step.spec;
  HeadsGradient gradient{Matrix(tape.q.rows(), tape.q.cols()), Matrix(tape.k.rows(), tape.k.cols()),
                         Matrix(tape.v.rows(), tape.v.cols())};
  for (int64_t sample = 0; sample < tape.q.rows() / spec.positions; ++sample)
    for (int64_t kv_head = 0; kv_head < spec.kv_heads; ++kv_head)
      SharedHeadBackward(step, layer, tape, dout, sample, kv_head, gradient);
  return gradient;
}

}  // namespace

AttentionTape AttentionBlockForward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights,
                                    const Matrix& x) {
  AttentionTape tape;
  tape.x = x;
  tape.h = step.F(x, {layer, "attn.input"});
  tape.zq = step.Activation(MatMul(tape.h, weights.q), {layer, "attn.q"});
  tape.zk = step.Activation(MatMul(tape.h, weights.k), {layer, "attn.k"});
  tape.zv = step.Activation(MatMul(tape.h, weights.v), {layer, "attn.v"});
  tape.q = step.F(tape.zq, {layer, "attn.q"});
  tape.k = step.F(tape.zk, {layer, "attn.k"});
  tape.v = step.F(tape.zv, {layer, "attn.v"});
  HeadsForward(step, layer, tape);
  tape.zo = step.Activation(MatMul(tape.o, weights.o), {layer, "attn.o"});
  tape.mask = step.Mask(contract::Site::kDropoutAttention, layer, x.rows());
  const Matrix y = Drop(step.F(tape.zo, {layer, "attn.o"}), tape.mask);
  tape.out = step.Activation(Add(x, y), {layer, "attn.residual"});
  return tape;
}

Matrix AttentionBlockBackward(const StepContext& step, int64_t layer, const LayerTensors<Matrix>& weights,
                              const AttentionTape& tape, const Matrix& dx, LayerTensors<Sum>& gradients) {
  // dz = drop'(dx) ⊙ S(o Wo)      dWo = oᵀ dz      do = G(dz Woᵀ)
  const Matrix dz = Hadamard(Drop(dx, tape.mask), step.S(tape.zo));
  step.recorder.Stored(dz, {layer, "attn.o output gradient"});
  gradients.o = MatMul(Transpose(tape.o), dz);
  const Matrix dout = step.Activation(MatMul(dz, Transpose(weights.o)), {layer, "attn.o input gradient"});
  const HeadsGradient heads = HeadsBackward(step, layer, tape, step.G(dout, {layer, "attn.o input gradient"}));

  // duq = dq ⊙ S(h Wq)   duk = dk ⊙ S(h Wk)   duv = dv ⊙ S(h Wv)
  const Matrix duq = Hadamard(heads.dq, step.S(tape.zq));
  const Matrix duk = Hadamard(heads.dk, step.S(tape.zk));
  const Matrix duv = Hadamard(heads.dv, step.S(tape.zv));

  // dWq = hᵀ duq         dWk = hᵀ duk         dWv = hᵀ duv
  gradients.q = MatMul(Transpose(tape.h), duq);
  gradients.k = MatMul(Transpose(tape.h), duk);
  gradients.v = MatMul(Transpose(tape.h), duv);

  // dh = G(duq Wqᵀ + duk Wkᵀ + duv Wvᵀ)
  Sum dh_sum = MatMul(duq, Transpose(weights.q));
  dh_sum += MatMul(duk, Transpose(weights.k));
  dh_sum += MatMul(duv, Transpose(weights.v));
  const Matrix dh = step.Activation(dh_sum, {layer, "attn.qkv input gradient"});

  // dx = G(dx + dh ⊙ S(x))
  const Matrix branch = Hadamard(step.G(dh, {layer, "attn.qkv input gradient"}), step.S(tape.x));
  const Matrix stream = step.Activation(Add(dx, branch), {layer, "attn.residual gradient"});
  return step.G(stream, {layer, "attn.residual gradient"});
}

}  // namespace plumbline::reference
