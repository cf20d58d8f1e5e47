// SPDX-License-Identifier: Apache-2.0
// Implementation of gpt2_model.h, to be read from top to bottom like docs/semantics.md. Each operation is LibTorch's;
// in bf16 each result is one rounding, as in a model of bf16 modules, except where the document wants fp32: the
// statistics (inside layer_norm), the softmax and the loss. Shapes: b sample, t position, d width, h head, c channel of
// a head, f hidden, v vocabulary.
#include "conformance/engines/torch_eager/gpt2_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {
namespace {

constexpr int64_t kEmbed = 0, kPosition = 1, kFirstLayer = 2, kTensorsOfLayer = 12;
constexpr int64_t kNorm1 = 0, kQkv = 2, kOut = 4, kNorm2 = 6, kUp = 8, kDown = 10;  // each a weight, then a bias
constexpr int64_t kHeadFromFinalNorm = 2;

// y ⊙ mask / (1 - p). Two operations, since 1 / (1 - p) is no bf16 number: a product with 0 or 1 is exact.
at::Tensor Drop(const at::Tensor& y, const std::vector<at::Tensor>& masks, int64_t index, double p) {
  return masks.empty() ? y : y.mul(masks[index]).div(1 - p);
}

at::Tensor Norm(const at::Tensor& x, const at::Tensor* weight_and_bias, double epsilon) {
  return at::layer_norm(x, {x.size(-1)}, weight_and_bias[0], weight_and_bias[1], epsilon);
}

// x W + b; ours is [in, out], LibTorch's [out, in].
at::Tensor Linear(const at::Tensor& x, const at::Tensor* weight_and_bias) {
  return at::linear(x, weight_and_bias[0].t(), weight_and_bias[1]);
}

// E[token] + P[position]. Rows are gathered from a wide copy: LibTorch sums the gradients of a token's occurrences in
// the type of the table, one after the other, and bf16 would lose the later ones.
at::Tensor Embed(const at::Tensor& embed_vd, const at::Tensor& position_td, const at::Tensor& tokens_bt) {
  return (at::embedding(ToWide(embed_vd), tokens_bt) + ToWide(position_td)).to(embed_vd.scalar_type());
}

// 0 where a position may look, -infinity where it may not, in the type of the scores.
at::Tensor CausalBias(int64_t positions, const at::Tensor& scores) {
  const at::Tensor later = at::ones({positions, positions}, at::TensorOptions().dtype(at::kBool)).triu(1);
  return at::zeros({positions, positions}, scores.options())
      .masked_fill(later, -std::numeric_limits<double>::infinity());
}

at::Tensor Attention(const contract::Gpt2Spec& spec, const at::Tensor& h_btd, const at::Tensor* layer,
                     const Gpt2Masks& masks, int64_t l) {
  const int64_t batch = h_btd.size(0), positions = h_btd.size(1);
  const at::Tensor qkv = Linear(h_btd, layer + kQkv);
  const auto heads = [&](int64_t which) {
    return qkv.narrow(-1, which * spec.width, spec.width)
        .view({batch, positions, spec.heads, spec.head_width()})
        .transpose(1, 2);
  };
  const at::Tensor q_bhtc = heads(0), k_bhtc = heads(1), v_bhtc = heads(2);
  const at::Tensor s_bhtt =
      ToWide(at::matmul(q_bhtc, k_bhtc.transpose(-1, -2))) / std::sqrt(static_cast<double>(spec.head_width()));
  const at::Tensor a_bhtt = at::softmax(s_bhtt + CausalBias(positions, s_bhtt), -1).to(h_btd.scalar_type());
  const at::Tensor o_bhtc = at::matmul(Drop(a_bhtt, masks.scores, l, spec.dropout), v_bhtc);
  const at::Tensor o_btd = o_bhtc.transpose(1, 2).reshape({batch, positions, spec.width});
  return Drop(Linear(o_btd, layer + kOut), masks.attention_out, l, spec.dropout);
}

at::Tensor Mlp(const contract::Gpt2Spec& spec, const at::Tensor& h_btd, const at::Tensor* layer, const Gpt2Masks& masks,
               int64_t l) {
  const at::Tensor r_btf = at::gelu(Linear(h_btd, layer + kUp), "tanh");
  return Drop(Linear(r_btf, layer + kDown), masks.mlp_out, l, spec.dropout);
}

}  // namespace

at::Tensor Gpt2CrossEntropy(const contract::Gpt2Spec& spec, const std::vector<at::Tensor>& parameters,
                            const at::Tensor& tokens_bt, const at::Tensor& labels_bt, const Gpt2Masks& masks) {
  const at::Tensor* final_norm = &parameters[kFirstLayer + kTensorsOfLayer * spec.layers];
  const at::Tensor& head_vd = spec.tied_head ? parameters[kEmbed] : final_norm[kHeadFromFinalNorm];
  at::Tensor x_btd =
      Drop(Embed(parameters[kEmbed], parameters[kPosition], tokens_bt), masks.embedding, 0, spec.dropout);
  for (int64_t l = 0; l < spec.layers; ++l) {
    const at::Tensor* layer = &parameters[kFirstLayer + kTensorsOfLayer * l];
    x_btd = x_btd + Attention(spec, Norm(x_btd, layer + kNorm1, spec.norm_epsilon), layer, masks, l);
    x_btd = x_btd + Mlp(spec, Norm(x_btd, layer + kNorm2, spec.norm_epsilon), layer, masks, l);
  }
  const at::Tensor logits_btv = at::linear(Norm(x_btd, final_norm, spec.norm_epsilon), head_vd);
  const at::Tensor wide_logits = ToWide(logits_btv).flatten(0, 1);
  return at::cross_entropy_loss(wide_logits, labels_bt.flatten(), /*weight=*/{}, at::Reduction::None)
      .view(labels_bt.sizes());
}

}  // namespace plumbline::conformance::torch_eager
