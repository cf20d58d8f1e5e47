// SPDX-License-Identifier: Apache-2.0
// The forward pass of family `exact` in LibTorch, read from top to bottom like docs/exact-family.md, "Forward". There
// is no backward pass here: autograd derives it, and each GradientFold stands where the document writes G, behind the
// complete sum. Header-only so that the compiled LibTorch files stay two. Not for shards or micro-batches: it takes the
// whole global batch. Shapes: b sample, t position, d width, k key/value head, g query head of a group, c channel of a
// head, f hidden, v vocabulary.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>

#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/engines/torch_eager/exact_ops.h"

namespace plumbline::conformance::torch_eager {

// One step's global batch; int64 [B, T] each.
struct StepBatch {
  at::Tensor tokens;
  at::Tensor labels;
  at::Tensor loss_weights;
};

// 2 · mask of a layer, storage type [B, T, d]; undefined tensors without dropout.
struct LayerDropout {
  at::Tensor attention;
  at::Tensor mlp;
};

class Decoder {
 public:
  // `folds` off replaces every fold and gradient fold by the identity. What is left is an ordinary differentiable
  // function, whose gradients a test can compare with finite differences; it is not the family.
  Decoder(const contract::ExactSpec& spec, at::ScalarType storage, bool folds = true)
      : spec_(spec), storage_(storage), folds_(folds) {}

  // The loss, fp64, ready for autograd. `parameters` in canonical order, wide; `dropout` one per layer, or empty.
  at::Tensor Loss(const std::vector<at::Tensor>& parameters, const StepBatch& batch,
                  const std::vector<LayerDropout>& dropout) const {
    at::Tensor x_btd = Embed(parameters[kEmbed], parameters[kPosition], batch.tokens);
    for (int64_t l = 0; l < spec_.layers; ++l) {
      const at::Tensor* weights = &parameters[kFirstLayer + kTensorsOfLayer * l];
      x_btd = Attention(x_btd, weights, dropout.empty() ? at::Tensor() : dropout[l].attention);
      x_btd = Mlp(x_btd, weights, dropout.empty() ? at::Tensor() : dropout[l].mlp);
    }
    return LossOfLogits(Head(x_btd, parameters[kEmbed]), batch);
  }

 private:
  static constexpr int64_t kEmbed = 0, kPosition = 1, kFirstLayer = 2, kTensorsOfLayer = 6;
  static constexpr int64_t kQ = 0, kK = 1, kV = 2, kO = 3, kUp = 4, kDown = 5;

  at::Tensor F(const at::Tensor& x) const { return folds_ ? Fold(x, spec_.fold_bound) : x; }
  at::Tensor G(const at::Tensor& x) const { return folds_ ? GradientFold(x, spec_.gradient_fold_bound) : x; }

  // x = E[token] + P[position]. Rows are gathered in wide, so that dE and dP sum in wide: storage could not hold the
  // sums.
  at::Tensor Embed(const at::Tensor& embed_vd, const at::Tensor& position_td, const at::Tensor& tokens_bt) const {
    const at::Tensor rows = embed_vd.index_select(0, tokens_bt.flatten());
    return (rows.view({tokens_bt.size(0), tokens_bt.size(1), spec_.width}) + position_td).to(storage_);
  }

  // x + drop(F(o Wo)). G on x folds the join: dx = G(dx + dh ⊙ S(x)).
  at::Tensor Attention(const at::Tensor& input_btd, const at::Tensor* weights, const at::Tensor& dropout) const {
    const at::Tensor x_btd = G(input_btd);
    const at::Tensor h_btd = G(F(x_btd));  // dh = G(duq Wqᵀ + duk Wkᵀ + duv Wvᵀ)
    // One product with [Wq Wk Wv]: the three terms of dh then are one sum, which no storage type rounds in between.
    const at::Tensor qkv = F(Linear(h_btd, at::cat({weights[kQ], weights[kK], weights[kV]}, 1)));
    const std::vector<at::Tensor> q_k_v = qkv.split_with_sizes({spec_.width, spec_.kv_width(), spec_.kv_width()}, 2);
    const at::Tensor o_btd = Heads(q_k_v[0], q_k_v[1], q_k_v[2]);
    return x_btd + Drop(F(Linear(o_btd, weights[kO])), dropout);
  }

  // The query heads of a group are stacked over their key/value head: rows (g, t). So dk and dv sum over the group
  // inside one product, and G meets the complete sum. Query head i = k · (H/K) + g has j = floor(i·K/H) = k.
  at::Tensor Heads(const at::Tensor& q_btd, const at::Tensor& k_bte, const at::Tensor& v_bte) const {
    const int64_t batch = q_btd.size(0), positions = q_btd.size(1), kv_heads = spec_.kv_heads;
    const int64_t group = spec_.heads / kv_heads, channels = spec_.head_width();
    const at::Tensor q = G(q_btd.view({batch, positions, kv_heads, group, channels})
                               .permute({0, 2, 3, 1, 4})
                               .reshape({batch, kv_heads, group * positions, channels}));        // dq_i = G(ds k_j)
    const at::Tensor k = G(k_bte.view({batch, positions, kv_heads, channels}).transpose(1, 2));  // dk_j = G(Σ dsᵀ q_i)
    const at::Tensor v = G(v_bte.view({batch, positions, kv_heads, channels}).transpose(1, 2));  // dv_j = G(Σ a_iᵀ dn)
    const at::Tensor a = G(F(at::matmul(q, k.transpose(2, 3))) * Causal(group, positions));      // da = G(dn v_jᵀ)
    const at::Tensor o = F(at::matmul(a, v));
    return G(o.view({batch, kv_heads, group, positions, channels})  // do = G(dz Woᵀ)
                 .permute({0, 3, 1, 2, 4})
                 .reshape({batch, positions, spec_.width}));
  }

  // causal[s, t] = 1 if t <= s, once per query head of a group: [group * T, T].
  at::Tensor Causal(int64_t group, int64_t positions) const {
    return at::ones({positions, positions}, at::TensorOptions().dtype(storage_)).tril().repeat({group, 1});
  }

  // x + drop(F(r Wd)), r = max(F(h Wu), 0).
  at::Tensor Mlp(const at::Tensor& input_btd, const at::Tensor* weights, const at::Tensor& dropout) const {
    const at::Tensor x_btd = G(input_btd);                                 // dx = G(dx + G(du Wuᵀ) ⊙ S(x))
    const at::Tensor h_btd = G(F(x_btd));                                  // G(du Wuᵀ)
    const at::Tensor r_btf = G(at::relu(F(Linear(h_btd, weights[kUp]))));  // G(dz Wdᵀ) ⊙ [F(h Wu) > 0]
    return x_btd + Drop(F(Linear(r_btf, weights[kDown])), dropout);
  }

  static at::Tensor Drop(const at::Tensor& y, const at::Tensor& twice_mask) {
    return twice_mask.defined() ? y * twice_mask : y;
  }

  // logits = h Eᵀ, in wide: they are compared, not folded. The last stream has one use and no G of its own.
  at::Tensor Head(const at::Tensor& x_btd, const at::Tensor& embed_vd) const {
    const at::Tensor h_btd = G(F(x_btd).to(WideType(storage_)));  // G(dlogits E)
    return Linear(h_btd, embed_vd.t());
  }

  // (1 / N) · Σ u · (logit[best] − logit[label]), N the number of tokens with u ≠ 0; of equal logits the smallest index
  // is best.
  at::Tensor LossOfLogits(const at::Tensor& logits_btv, const StepBatch& batch) const {
    const at::Tensor indices_v = at::arange(spec_.vocab, at::TensorOptions().dtype(at::kLong));
    const at::Tensor is_largest = logits_btv.detach() == logits_btv.detach().amax(-1, /*keepdim=*/true);
    const at::Tensor best_bt1 = at::where(is_largest, indices_v, spec_.vocab).amin(-1, /*keepdim=*/true);
    const at::Tensor gap_bt =
        (logits_btv.gather(-1, best_bt1) - logits_btv.gather(-1, batch.labels.unsqueeze(-1))).squeeze(-1);
    const at::Tensor num_weighted = batch.loss_weights.ne(0).sum();
    return (gap_bt.to(at::kDouble) * batch.loss_weights).sum() / num_weighted;
  }

  contract::ExactSpec spec_;
  at::ScalarType storage_;
  bool folds_;
};

}  // namespace plumbline::conformance::torch_eager
