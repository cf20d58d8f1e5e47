// SPDX-License-Identifier: Apache-2.0
// Implementation of decoder.h, to be read from top to bottom like docs/exact-family.md, "Forward". There is no backward
// pass here: autograd derives it, and each G stands where the document writes G, so that it meets the complete sum; the
// formula behind it is the document's. at::remainder is the mathematical mod (its result has the sign of the divisor);
// the tests hold it to that. Shapes: b sample, t position, d width, e width of keys and values, f hidden, v vocabulary.
#include "conformance/engines/torch_eager/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/custom_function.h>

#include "conformance/engines/torch_eager/product.h"
#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {
namespace {

constexpr int64_t kEmbed = 0, kPosition = 1, kFirstLayer = 2, kTensorsOfLayer = 6;
constexpr int64_t kQ = 0, kK = 1, kV = 2, kO = 3, kUp = 4, kDown = 5;

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// (x + bound) mod 4 bound, in wide.
at::Tensor FoldPhase(const at::Tensor& x, int64_t bound) { return at::remainder(ToWide(x) + bound, 4 * bound); }

at::Tensor FoldValue(const at::Tensor& x, int64_t bound) {
  const at::Tensor phase = FoldPhase(x, bound);
  return at::where(phase <= 2 * bound, phase - bound, 3 * bound - phase).to(x.scalar_type());
}

at::Tensor FoldSlope(const at::Tensor& x, int64_t bound) {
  const at::Tensor one = at::ones_like(x);
  return at::where(FoldPhase(x, bound) < 2 * bound, one, -one);
}

struct FoldFunction : torch::autograd::Function<FoldFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t bound) {
    context->save_for_backward({x});
    context->saved_data["bound"] = bound;
    return FoldValue(x, bound);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {gradient[0] * FoldSlope(x, context->saved_data["bound"].toInt()), at::Tensor()};
  }
};

struct GradientFoldFunction : torch::autograd::Function<GradientFoldFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t bound) {
    context->saved_data["bound"] = bound;
    return x;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    return {FoldValue(gradient[0], context->saved_data["bound"].toInt()), at::Tensor()};
  }
};

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor stored_weight = weight.to(x.scalar_type());
    context->save_for_backward({x, stored_weight});
    return Product(x, stored_weight);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& dy = gradient[0];
    const at::Tensor dweight = at::matmul(ToWide(x.flatten(0, -2)).t(), ToWide(dy.flatten(0, -2)));
    return {Product(dy, saved[1].t()), dweight};
  }
};

// drop(y); 2 · mask is 0 or 2 in any type.
at::Tensor Drop(const at::Tensor& y, const at::Tensor* twice_mask) {
  return twice_mask == nullptr ? y : y * twice_mask->to(y.scalar_type());
}

// (1 / N) · Σ u · (logit[best] − logit[label]), N the number of tokens with u ≠ 0; of equal logits the smallest index
// is best.
at::Tensor LossOfLogits(const at::Tensor& logits_btv, const at::Tensor& labels_bt, const at::Tensor& loss_weights_bt) {
  const int64_t vocab = logits_btv.size(-1);
  const at::Tensor indices_v = at::arange(vocab, at::TensorOptions().dtype(at::kLong));
  const at::Tensor is_largest = logits_btv.detach() == logits_btv.detach().amax(-1, /*keepdim=*/true);
  const at::Tensor best_bt1 = at::where(is_largest, indices_v, vocab).amin(-1, /*keepdim=*/true);
  const at::Tensor gap_bt =
      (logits_btv.gather(-1, best_bt1) - logits_btv.gather(-1, labels_bt.unsqueeze(-1))).squeeze(-1);
  const at::Tensor num_weighted = loss_weights_bt.ne(0).sum();
  return (gap_bt.to(at::kDouble) * loss_weights_bt).sum() / num_weighted;
}

}  // namespace

at::Tensor Fold(const at::Tensor& x, int64_t bound) { return FoldFunction::apply(x, bound); }

at::Tensor GradientFold(const at::Tensor& x, int64_t bound) { return GradientFoldFunction::apply(x, bound); }

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight) { return LinearFunction::apply(x, weight); }

Decoder::Decoder(const contract::ExactSpec& spec, contract::DType storage, int64_t loss_scale, bool folds)
    : spec_(spec), storage_(storage), scaled_gradient_bound_(spec.gradient_fold_bound * loss_scale), folds_(folds) {}

at::Tensor Decoder::Loss(const std::vector<at::Tensor>& parameters, const at::Tensor& tokens, const at::Tensor& labels,
                         const at::Tensor& loss_weights, const std::vector<at::Tensor>& twice_masks) const {
  at::Tensor x_btd = Embed(parameters[kEmbed], parameters[kPosition], tokens);
  for (int64_t l = 0; l < spec_.layers; ++l) {
    const at::Tensor* weights = &parameters[kFirstLayer + kTensorsOfLayer * l];
    x_btd = Attention(x_btd, weights, twice_masks.empty() ? nullptr : &twice_masks[2 * l]);
    x_btd = Mlp(x_btd, weights, twice_masks.empty() ? nullptr : &twice_masks[2 * l + 1]);
  }
  return LossOfLogits(Head(x_btd, parameters[kEmbed]), labels, loss_weights);
}

at::Tensor Decoder::F(const at::Tensor& x) const { return folds_ ? Fold(x, spec_.fold_bound) : x; }

at::Tensor Decoder::G(const at::Tensor& x) const { return folds_ ? GradientFold(x, scaled_gradient_bound_) : x; }

// x = E[token] + P[position]. Rows are gathered in wide, so that dE and dP sum in wide: storage could not hold the
// sums.
at::Tensor Decoder::Embed(const at::Tensor& embed_vd, const at::Tensor& position_td,
                          const at::Tensor& tokens_bt) const {
  const at::Tensor rows = embed_vd.index_select(0, tokens_bt.flatten());
  return ToStorage(rows.view({tokens_bt.size(0), tokens_bt.size(1), spec_.width}) + position_td, storage_);
}

// x + drop(F(o Wo)). G on x folds the join: dx = G(dx + dh ⊙ S(x)).
at::Tensor Decoder::Attention(const at::Tensor& input_btd, const at::Tensor* weights,
                              const at::Tensor* twice_mask) const {
  const at::Tensor x_btd = G(input_btd);
  const at::Tensor h_btd = G(F(x_btd));  // dh = G(duq Wqᵀ + duk Wkᵀ + duv Wvᵀ)
  // One product with [Wq Wk Wv]: the three terms of dh then are one sum, which no storage type rounds in between.
  const at::Tensor qkv = F(Linear(h_btd, at::cat({weights[kQ], weights[kK], weights[kV]}, 1)));
  const std::vector<at::Tensor> q_k_v = qkv.split_with_sizes({spec_.width, spec_.kv_width(), spec_.kv_width()}, 2);
  const at::Tensor o_btd = Heads(q_k_v[0], q_k_v[1], q_k_v[2]);
  return x_btd + Drop(F(Linear(o_btd, weights[kO])), twice_mask);
}

// The query heads of a group are stacked over their key/value head: rows (g, t). So dk and dv sum over the group
// inside one product, and G meets the complete sum. Query head i = k · (H/K) + g has j = floor(i·K/H) = k.
at::Tensor Decoder::Heads(const at::Tensor& q_btd, const at::Tensor& k_bte, const at::Tensor& v_bte) const {
  const int64_t batch = q_btd.size(0), positions = q_btd.size(1), kv_heads = spec_.kv_heads;
  const int64_t group = spec_.heads / kv_heads, channels = spec_.head_width();
  const at::Tensor q = G(q_btd.view({batch, positions, kv_heads, group, channels})
                             .permute({0, 2, 3, 1, 4})
                             .reshape({batch, kv_heads, group * positions, channels}));        // dq_i = G(ds k_j)
  const at::Tensor k = G(k_bte.view({batch, positions, kv_heads, channels}).transpose(1, 2));  // dk_j = G(Σ dsᵀ q_i)
  const at::Tensor v = G(v_bte.view({batch, positions, kv_heads, channels}).transpose(1, 2));  // dv_j = G(Σ a_iᵀ dn)
  const at::Tensor a = G(F(Product(q, k.transpose(2, 3))) * Causal(group, positions));         // da = G(dn v_jᵀ)
  const at::Tensor o = F(Product(a, v));
  return G(o.view({batch, kv_heads, group, positions, channels})  // do = G(dz Woᵀ)
               .permute({0, 3, 1, 2, 4})
               .reshape({batch, positions, spec_.width}));
}

// causal[s, t] = 1 if t <= s, once per query head of a group: [group * T, T].
at::Tensor Decoder::Causal(int64_t group, int64_t positions) const {
  return ToStorage(at::ones({positions, positions}).tril(), storage_).repeat({group, 1});
}

// x + drop(F(r Wd)), r = max(F(h Wu), 0).
at::Tensor Decoder::Mlp(const at::Tensor& input_btd, const at::Tensor* weights, const at::Tensor* twice_mask) const {
  const at::Tensor x_btd = G(input_btd);                                 // dx = G(dx + G(du Wuᵀ) ⊙ S(x))
  const at::Tensor h_btd = G(F(x_btd));                                  // G(du Wuᵀ)
  const at::Tensor r_btf = G(at::relu(F(Linear(h_btd, weights[kUp]))));  // G(dz Wdᵀ) ⊙ [F(h Wu) > 0]
  return x_btd + Drop(F(Linear(r_btf, weights[kDown])), twice_mask);
}

// logits = h Eᵀ, in wide: they are compared, not folded. The last stream has one use and no G of its own.
at::Tensor Decoder::Head(const at::Tensor& x_btd, const at::Tensor& embed_vd) const {
  const at::Tensor h_btd = G(ToWide(F(x_btd)));  // G(dlogits E)
  return Linear(h_btd, embed_vd.t());
}

}  // namespace plumbline::conformance::torch_eager
