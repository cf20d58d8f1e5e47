// SPDX-License-Identifier: Apache-2.0
// Implementation of real_layers.h.
#include "conformance/engines/torch_eager/real_layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "conformance/engines/torch_eager/product.h"
#include "conformance/engines/torch_eager/storage_type.h"

namespace plumbline::conformance::torch_eager {
namespace {

// 0 where a position may look, -infinity where it may not, in the type of the scores.
at::Tensor CausalBias(int64_t positions, const at::Tensor& scores) {
  const at::Tensor later = at::ones({positions, positions}, at::TensorOptions().dtype(at::kBool)).triu(1);
  return at::zeros({positions, positions}, scores.options())
      .masked_fill(later, -std::numeric_limits<double>::infinity());
}

// t · theta^(-2i/D) for each position and each i < D/2, twice: both channels of a pair have the same.
at::Tensor Angles(int64_t positions, int64_t channels, double theta, const at::TensorOptions& options) {
  const at::Tensor frequencies = at::pow(theta, at::arange(0, channels, 2, options) / channels).reciprocal();
  const at::Tensor angles = at::outer(at::arange(positions, options), frequencies);
  return at::cat({angles, angles}, -1);
}

}  // namespace

// Two operations, since 1 / (1 - p) is no bf16 or fp16 number: a product with 0 or 1 is exact.
at::Tensor Drop(const at::Tensor& y, const std::vector<at::Tensor>& masks, int64_t index, double p) {
  return masks.empty() ? y : y.mul(masks[index]).div(1 - p);
}

at::Tensor Rotated(const at::Tensor& y_bhtc, double theta) {
  const at::Tensor wide = ToWide(y_bhtc);
  const int64_t channels = wide.size(-1), half = channels / 2;
  const at::Tensor angles_tc = Angles(wide.size(-2), channels, theta, wide.options());
  const at::Tensor partners = at::cat({-wide.narrow(-1, half, half), wide.narrow(-1, 0, half)}, -1);
  return (wide * angles_tc.cos() + partners * angles_tc.sin()).to(y_bhtc.scalar_type());
}

at::Tensor ForQueryHeads(const at::Tensor& y_bhtc, int64_t num_heads) {
  const int64_t batch = y_bhtc.size(0), kv_heads = y_bhtc.size(1), positions = y_bhtc.size(2);
  const int64_t channels = y_bhtc.size(3), copies = num_heads / kv_heads;
  return y_bhtc.unsqueeze(2)
      .expand({batch, kv_heads, copies, positions, channels})
      .reshape({batch, num_heads, positions, channels});
}

at::Tensor CausalAttention(const contract::RealSpec& spec, const at::Tensor& q_bhtc, const at::Tensor& k_bhtc,
                           const at::Tensor& v_bhtc, const DropMasks& masks, int64_t layer) {
  const int64_t batch = q_bhtc.size(0), positions = q_bhtc.size(2);
  const at::Tensor s_bhtt =
      ToWide(Product(q_bhtc, k_bhtc.transpose(-1, -2))) / std::sqrt(static_cast<double>(spec.head_width()));
  const at::Tensor a_bhtt = at::softmax(s_bhtt + CausalBias(positions, s_bhtt), -1).to(q_bhtc.scalar_type());
  const at::Tensor o_bhtc = Product(Drop(a_bhtt, masks.scores, layer, spec.dropout), v_bhtc);
  return o_bhtc.transpose(1, 2).reshape({batch, positions, spec.width});
}

at::Tensor TokenCrossEntropy(const at::Tensor& logits_btv, const at::Tensor& labels_bt) {
  const at::Tensor wide_logits = ToWide(logits_btv).flatten(0, 1);
  return at::cross_entropy_loss(wide_logits, labels_bt.flatten(), /*weight=*/{}, at::Reduction::None)
      .view(labels_bt.sizes());
}

}  // namespace plumbline::conformance::torch_eager
