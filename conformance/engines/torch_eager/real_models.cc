// SPDX-License-Identifier: Apache-2.0
// Implementation of real_models.h, to be read from top to bottom like docs/semantics.md. Each operation is LibTorch's;
// in bf16 and fp16 each result is one rounding, as in a model of such modules, except where the document wants fp32:
// the statistics (inside layer_norm and rms_norm), rotations, the softmax and the loss. Shapes: b sample, t position, d
// width, h head, c channel of a head, f hidden, v vocabulary.
#include "conformance/engines/torch_eager/real_models.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>

#include <string>

#include "conformance/contract/error.h"
#include "conformance/engines/torch_eager/product.h"
#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {
namespace {

// The rows of the tokens, from a wide copy of the table and wide: LibTorch sums the gradients of a token's occurrences
// in the type of the table, one after the other, and 16 bits would lose the later ones.
at::Tensor WideRows(const at::Tensor& embed_vd, const at::Tensor& tokens_bt) {
  return at::embedding(ToWide(embed_vd), tokens_bt);
}

namespace gpt2 {

// Indices in canonical order; of a layer, and of the final norm, relative to their first.
constexpr int64_t kEmbed = 0, kPosition = 1, kFirstLayer = 2, kTensorsOfLayer = 12;
constexpr int64_t kNorm1 = 0, kQkv = 2, kOut = 4, kNorm2 = 6, kUp = 8, kDown = 10;  // each a weight, then a bias
constexpr int64_t kHeadFromFinalNorm = 2;

at::Tensor Norm(const at::Tensor& x, const at::Tensor* weight_and_bias, double epsilon) {
  return at::layer_norm(x, {x.size(-1)}, weight_and_bias[0], weight_and_bias[1], epsilon);
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor* weight_and_bias) {
  return BiasedProduct(x, weight_and_bias[0], weight_and_bias[1]);
}

at::Tensor Attention(const contract::Gpt2Spec& spec, const at::Tensor& h_btd, const at::Tensor* layer,
                     const DropMasks& masks, int64_t l) {
  const at::Tensor qkv = Linear(h_btd, layer + kQkv);
  const auto heads = [&](int64_t which) {
    return qkv.narrow(-1, which * spec.width, spec.width)
        .view({h_btd.size(0), h_btd.size(1), spec.heads, spec.head_width()})
        .transpose(1, 2);
  };
  const at::Tensor o_btd = CausalAttention(spec, heads(0), heads(1), heads(2), masks, l);
  return Drop(Linear(o_btd, layer + kOut), masks.attention_out, l, spec.dropout);
}

at::Tensor Mlp(const contract::Gpt2Spec& spec, const at::Tensor& h_btd, const at::Tensor* layer, const DropMasks& masks,
               int64_t l) {
  const at::Tensor r_btf = at::gelu(Linear(h_btd, layer + kUp), "tanh");
  return Drop(Linear(r_btf, layer + kDown), masks.mlp_out, l, spec.dropout);
}

at::Tensor Logits(const contract::Gpt2Spec& spec, const std::vector<at::Tensor>& parameters,
                  const at::Tensor& tokens_bt, const DropMasks& masks) {
  const at::Tensor* final_norm = &parameters[kFirstLayer + kTensorsOfLayer * spec.layers];
  const at::Tensor& embed_vd = parameters[kEmbed];
  const at::Tensor& head_vd = spec.tied_head ? embed_vd : final_norm[kHeadFromFinalNorm];
  const at::Tensor sum_btd = WideRows(embed_vd, tokens_bt) + ToWide(parameters[kPosition]);
  at::Tensor x_btd = Drop(sum_btd.to(embed_vd.scalar_type()), masks.embedding, 0, spec.dropout);
  for (int64_t l = 0; l < spec.layers; ++l) {
    const at::Tensor* layer = &parameters[kFirstLayer + kTensorsOfLayer * l];
    x_btd = x_btd + Attention(spec, Norm(x_btd, layer + kNorm1, spec.norm_epsilon), layer, masks, l);
    x_btd = x_btd + Mlp(spec, Norm(x_btd, layer + kNorm2, spec.norm_epsilon), layer, masks, l);
  }
  return Product(Norm(x_btd, final_norm, spec.norm_epsilon), head_vd.t());
}

}  // namespace gpt2

namespace llama {

// Indices in canonical order; of a layer, and of the final norm, relative to their first.
constexpr int64_t kEmbed = 0, kFirstLayer = 1, kTensorsOfLayer = 9;
constexpr int64_t kNorm1 = 0, kQ = 1, kK = 2, kV = 3, kOut = 4, kNorm2 = 5, kGate = 6, kUp = 7, kDown = 8;
constexpr int64_t kHeadFromFinalNorm = 1;

at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return at::rms_norm(x, {x.size(-1)}, weight, epsilon);
}

at::Tensor Attention(const contract::LlamaSpec& spec, const at::Tensor& h_btd, const at::Tensor* layer,
                     const DropMasks& masks, int64_t l) {
  const auto heads = [&](int64_t which, int64_t num_heads) {
    return Product(h_btd, layer[which])
        .view({h_btd.size(0), h_btd.size(1), num_heads, spec.head_width()})
        .transpose(1, 2);
  };
  const at::Tensor q_bhtc = Rotated(heads(kQ, spec.heads), spec.rope_theta);
  const at::Tensor k_bhtc = ForQueryHeads(Rotated(heads(kK, spec.kv_heads), spec.rope_theta), spec.heads);
  const at::Tensor v_bhtc = ForQueryHeads(heads(kV, spec.kv_heads), spec.heads);
  const at::Tensor o_btd = CausalAttention(spec, q_bhtc, k_bhtc, v_bhtc, masks, l);
  return Drop(Product(o_btd, layer[kOut]), masks.attention_out, l, spec.dropout);
}

at::Tensor Mlp(const contract::LlamaSpec& spec, const at::Tensor& h_btd, const at::Tensor* layer,
               const DropMasks& masks, int64_t l) {
  const at::Tensor r_btf = at::silu(Product(h_btd, layer[kGate])) * Product(h_btd, layer[kUp]);
  return Drop(Product(r_btf, layer[kDown]), masks.mlp_out, l, spec.dropout);
}

at::Tensor Logits(const contract::LlamaSpec& spec, const std::vector<at::Tensor>& parameters,
                  const at::Tensor& tokens_bt, const DropMasks& masks) {
  const at::Tensor* final_norm = &parameters[kFirstLayer + kTensorsOfLayer * spec.layers];
  const at::Tensor& embed_vd = parameters[kEmbed];
  at::Tensor x_btd = Drop(WideRows(embed_vd, tokens_bt).to(embed_vd.scalar_type()), masks.embedding, 0, spec.dropout);
  for (int64_t l = 0; l < spec.layers; ++l) {
    const at::Tensor* layer = &parameters[kFirstLayer + kTensorsOfLayer * l];
    x_btd = x_btd + Attention(spec, Norm(x_btd, layer[kNorm1], spec.norm_epsilon), layer, masks, l);
    x_btd = x_btd + Mlp(spec, Norm(x_btd, layer[kNorm2], spec.norm_epsilon), layer, masks, l);
  }
  return Product(Norm(x_btd, *final_norm, spec.norm_epsilon), final_norm[kHeadFromFinalNorm].t());
}

}  // namespace llama

at::Tensor Logits(const contract::ModelSpec& model, const std::vector<at::Tensor>& parameters, const at::Tensor& tokens,
                  const DropMasks& masks) {
  switch (model.kind()) {
    case contract::Family::kGpt2:
      return gpt2::Logits(model.gpt2(), parameters, tokens, masks);
    case contract::Family::kLlama:
      return llama::Logits(model.llama(), parameters, tokens, masks);
    case contract::Family::kExact:
      break;
  }
  contract::Fail(contract::ErrorCode::kInternal, "no LibTorch model of family " + std::string(model.family()));
}

}  // namespace

at::Tensor ModelCrossEntropy(const contract::ModelSpec& model, const std::vector<at::Tensor>& parameters,
                             const at::Tensor& tokens, const at::Tensor& labels, const DropMasks& masks) {
  return TokenCrossEntropy(Logits(model, parameters, tokens, masks), labels);
}

}  // namespace plumbline::conformance::torch_eager
