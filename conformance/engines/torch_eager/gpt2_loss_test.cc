// SPDX-License-Identifier: Apache-2.0
// The loss of family gpt2 against docs/semantics.md transcribed into loops over doubles, which share no tensor library
// with the witness: what finite differences of its own loss cannot show (order of heads and of [q | k | v], mask,
// GELU's form, epsilon, sites and elements of dropout, which samples a micro-batch holds).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "conformance/engines/torch_eager/plain_loss.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::DType;
using contract::Site;

class PlainGpt2Loss : public PlainLoss {
 public:
  explicit PlainGpt2Loss(const CaseData& data) : PlainLoss(data), tied_head_(data.spec.model.gpt2().tied_head) {}

 private:
  Rows Norm(const Rows& x, const std::string& name) const {
    Rows y = x;
    for (Row& row : y) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(row.size());
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] = (row[c] - mean) / std::sqrt(variance + spec_.norm_epsilon) * At(name + ".weight", 0, c) +
                 At(name + ".bias", 0, c);
      }
    }
    return y;
  }

  Rows Linear(const Rows& x, const std::string& name, int64_t out) const {
    Rows y = Product(x, name + ".weight", out);
    for (Row& row : y) {
      for (int64_t o = 0; o < out; ++o) row[o] += At(name + ".bias", 0, o);
    }
    return y;
  }

  // The share [q | k | v] number `which`.
  Rows Third(const Rows& qkv, int64_t which) const {
    Rows y;
    for (const Row& row : qkv) {
      y.emplace_back(row.begin() + which * spec_.width, row.begin() + (which + 1) * spec_.width);
    }
    return y;
  }

  Rows Logits(int64_t step, int64_t b) const override {
    Rows x = Embedded(step, b);
    for (int64_t t = 0; t < spec_.positions; ++t) {
      for (int64_t c = 0; c < spec_.width; ++c) x[t][c] += At("pos.weight", t, c);
    }
    Drop(x, Site::kDropoutEmbedding, step, 0, b);
    for (int64_t l = 0; l < spec_.layers; ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      const Rows qkv = Linear(Norm(x, layer + "norm1"), layer + "attn.qkv", 3 * spec_.width);
      const Rows o = Attention(Third(qkv, 0), Third(qkv, 1), Third(qkv, 2), spec_.heads, step, l, b);
      Rows z = Linear(o, layer + "attn.out", spec_.width);
      Drop(z, Site::kDropoutAttentionOut, step, l, b);
      Add(x, z);
      Rows r = Linear(Norm(x, layer + "norm2"), layer + "mlp.up", spec_.hidden);
      for (Row& row : r) {
        for (double& v : row)
          v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
      }
      z = Linear(r, layer + "mlp.down", spec_.width);
      Drop(z, Site::kDropoutMlpOut, step, l, b);
      Add(x, z);
    }
    return TransposedProduct(Norm(x, "norm"), tied_head_ ? "embed.weight" : "head.weight", spec_.vocab);
  }

  const bool tied_head_;
};

std::vector<contract::Gpt2Spec> Models() {
  contract::Gpt2Spec other = Tiny();
  other.tied_head = false;
  other.dropout = 0.3;
  other.norm_epsilon = 0.01;
  return {Tiny(), other};
}

TEST(Gpt2Loss, IsTheDocumentsInFp64ForAnyAccumulation) {
  for (const contract::Gpt2Spec& model : Models()) {
    for (const int64_t accumulation : {1, 2, 3}) {
      const CaseData data = MakeSteepCase(model, DType::kF64, accumulation);
      for (const int64_t step : {0, 1}) EXPECT_NEAR(WitnessLoss(data, step), PlainGpt2Loss(data).Of(step), 1e-12);
    }
  }
}

TEST(Gpt2Loss, IsTheDocumentsWithinTheStorageTypesPrecision) {
  for (const contract::Gpt2Spec& model : Models()) {
    for (const auto& [storage, bound] : {std::pair(DType::kF32, 1e-5), {DType::kBF16, 0.05}, {DType::kF16, 0.05 / 8}}) {
      const CaseData data = MakeSteepCase(model, storage, 1);
      EXPECT_NEAR(WitnessLoss(data, 1), PlainGpt2Loss(data).Of(1), bound) << Name(storage);
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
