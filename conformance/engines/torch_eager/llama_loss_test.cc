// SPDX-License-Identifier: Apache-2.0
// The loss of family llama against docs/semantics.md transcribed into loops over doubles: heads and who shares them,
// pairs, angles and sign of rotations, mask, SwiGLU, epsilon, sites and elements of dropout, padding.
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

class PlainLlamaLoss : public PlainLoss {
 public:
  explicit PlainLlamaLoss(const CaseData& data) : PlainLoss(data), llama_(data.spec.model.llama()) {}

 private:
  Rows Norm(const Rows& x, const std::string& name) const {
    Rows y = x;
    for (Row& row : y) {
      double mean_square = 0;
      for (const double v : row) mean_square += v * v / static_cast<double>(row.size());
      const double root = std::sqrt(mean_square + spec_.norm_epsilon);
      for (size_t c = 0; c < row.size(); ++c) row[c] *= At(name, 0, static_cast<int64_t>(c)) / root;
    }
    return y;
  }

  // Each head of x, in place.
  void Rotate(Rows& x, int64_t num_heads) const {
    const int64_t channels = spec_.width / spec_.heads;
    for (size_t t = 0; t < x.size(); ++t) {
      for (int64_t h = 0; h < num_heads; ++h) {
        for (int64_t i = 0; i < channels / 2; ++i) {
          const double angle = static_cast<double>(t) * std::pow(llama_.rope_theta, -2.0 * static_cast<double>(i) /
                                                                                        static_cast<double>(channels));
          double& near = x[t][h * channels + i];
          double& far = x[t][h * channels + i + channels / 2];
          const double turned = near * std::cos(angle) - far * std::sin(angle);
          far = far * std::cos(angle) + near * std::sin(angle);
          near = turned;
        }
      }
    }
  }

  Rows Attended(const Rows& h, const std::string& layer, int64_t step, int64_t l, int64_t b) const {
    const int64_t kv_width = spec_.width / spec_.heads * llama_.kv_heads;
    Rows q = Product(h, layer + "attn.q.weight", spec_.width);
    Rows k = Product(h, layer + "attn.k.weight", kv_width);
    Rotate(q, spec_.heads);
    Rotate(k, llama_.kv_heads);
    const Rows o = Attention(q, k, Product(h, layer + "attn.v.weight", kv_width), llama_.kv_heads, step, l, b);
    return Product(o, layer + "attn.out.weight", spec_.width);
  }

  Rows Mlp(const Rows& h, const std::string& layer) const {
    Rows r = Product(h, layer + "mlp.gate.weight", spec_.hidden);
    const Rows up = Product(h, layer + "mlp.up.weight", spec_.hidden);
    for (size_t t = 0; t < r.size(); ++t) {
      for (int64_t f = 0; f < spec_.hidden; ++f) r[t][f] *= up[t][f] / (1 + std::exp(-r[t][f]));
    }
    return Product(r, layer + "mlp.down.weight", spec_.width);
  }

  Rows Logits(int64_t step, int64_t b) const override {
    Rows x = Embedded(step, b);
    Drop(x, Site::kDropoutEmbedding, step, 0, b);
    for (int64_t l = 0; l < spec_.layers; ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      Rows z = Attended(Norm(x, layer + "norm1.weight"), layer, step, l, b);
      Drop(z, Site::kDropoutAttentionOut, step, l, b);
      Add(x, z);
      z = Mlp(Norm(x, layer + "norm2.weight"), layer);
      Drop(z, Site::kDropoutMlpOut, step, l, b);
      Add(x, z);
    }
    return TransposedProduct(Norm(x, "norm.weight"), "head.weight", spec_.vocab);
  }

  const contract::LlamaSpec& llama_;
};

std::vector<contract::LlamaSpec> Models() {
  contract::LlamaSpec one_pair = TinyLlama();  // heads of two channels, one key/value head a query head
  one_pair.heads = one_pair.kv_heads = one_pair.width / 2;
  return {TinyLlama(), UnequalLlama(), one_pair};
}

TEST(LlamaLoss, IsTheDocumentsInFp64ForAnyAccumulation) {
  for (const contract::LlamaSpec& model : Models()) {
    for (const int64_t accumulation : {1, 2, 3}) {
      const CaseData data = MakeSteepCase(model, DType::kF64, accumulation);
      for (const int64_t step : {0, 1}) EXPECT_NEAR(WitnessLoss(data, step), PlainLlamaLoss(data).Of(step), 1e-12);
    }
  }
}

TEST(LlamaLoss, IsTheDocumentsWithinTheStorageTypesPrecision) {
  for (const contract::LlamaSpec& model : Models()) {
    for (const auto& [storage, bound] : {std::pair(DType::kF32, 1e-5), {DType::kBF16, 0.05}, {DType::kF16, 0.05 / 8}}) {
      const CaseData data = MakeSteepCase(model, storage, 1);
      EXPECT_NEAR(WitnessLoss(data, 1), PlainLlamaLoss(data).Of(1), bound) << Name(storage);
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
