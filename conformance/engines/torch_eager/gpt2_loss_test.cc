// SPDX-License-Identifier: Apache-2.0
// The loss of family gpt2 against docs/semantics.md transcribed into loops over doubles, which share no tensor library
// with the witness: what finite differences of its own loss cannot show (order of heads and of [q | k | v], mask,
// GELU's form, epsilon, sites and elements of dropout, which samples a micro-batch holds).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "conformance/contract/random_stream.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {
namespace {

using contract::CaseData;
using contract::DType;
using contract::Site;
using Row = std::vector<double>;
using Rows = std::vector<Row>;  // one a position

class PlainLoss {
 public:
  explicit PlainLoss(const CaseData& data) : data_(data), spec_(data.spec.model.gpt2()) {}

  // Of the global batch.
  double Of(int64_t step) const {
    double sum = 0, sum_weights = 0;
    for (int64_t b = 0; b < data_.batches.batch; ++b) {
      const Rows logits = Logits(step, b);
      for (int64_t t = 0; t < spec_.positions; ++t) {
        const int64_t at = data_.batches.Index(step, b, t);
        double exponentials = 0;
        for (const double logit : logits[t]) exponentials += std::exp(logit);
        const double u = data_.batches.loss_weights[at];
        sum += u * (std::log(exponentials) - logits[t][data_.batches.labels[at]]);
        sum_weights += u;
      }
    }
    return sum / sum_weights;
  }

 private:
  double At(const std::string& name, int64_t row, int64_t col) const {
    for (size_t i = 0; i < data_.parameters.size(); ++i) {
      const contract::ParameterSpec& parameter = data_.parameters[i];
      if (parameter.name == name) return data_.real_state[i].master[row * parameter.cols + col];
    }
    ADD_FAILURE() << "no parameter " << name;
    return 0;
  }

  double Kept(Site site, int64_t step, int64_t layer, int64_t element) const {
    if (spec_.dropout == 0) return 1;
    const double word = contract::Draw(data_.spec.seed, site, step, layer, element);
    return word >= std::floor(spec_.dropout * 4294967296.0) ? 1 / (1 - spec_.dropout) : 0;
  }

  void Drop(Rows& x, Site site, int64_t step, int64_t layer, int64_t b) const {
    for (int64_t t = 0; t < spec_.positions; ++t) {
      for (int64_t c = 0; c < spec_.width; ++c) {
        x[t][c] *= Kept(site, step, layer, (b * spec_.positions + t) * spec_.width + c);
      }
    }
  }

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
    Rows y;
    for (const Row& row : x) {
      Row& result = y.emplace_back();
      for (int64_t o = 0; o < out; ++o) {
        double sum = At(name + ".bias", 0, o);
        for (size_t i = 0; i < row.size(); ++i) sum += row[i] * At(name + ".weight", i, o);
        result.push_back(sum);
      }
    }
    return y;
  }

  Rows Heads(const Rows& qkv, int64_t step, int64_t layer, int64_t b) const {
    const int64_t channels = spec_.width / spec_.heads;
    Rows o(spec_.positions, Row(spec_.width, 0));
    for (int64_t h = 0; h < spec_.heads; ++h) {
      for (int64_t query = 0; query < spec_.positions; ++query) {
        Row a;
        double total = 0;
        for (int64_t key = 0; key <= query; ++key) {
          double s = 0;
          for (int64_t c = h * channels; c < (h + 1) * channels; ++c) s += qkv[query][c] * qkv[key][spec_.width + c];
          a.push_back(std::exp(s / std::sqrt(static_cast<double>(channels))));
          total += a.back();
        }
        for (int64_t key = 0; key <= query; ++key) {
          const int64_t element = ((b * spec_.heads + h) * spec_.positions + query) * spec_.positions + key;
          const double weight = a[key] / total * Kept(Site::kDropoutScores, step, layer, element);
          for (int64_t c = h * channels; c < (h + 1) * channels; ++c) {
            o[query][c] += weight * qkv[key][2 * spec_.width + c];
          }
        }
      }
    }
    return o;
  }

  static void Add(Rows& x, const Rows& y) {
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t c = 0; c < x[t].size(); ++c) x[t][c] += y[t][c];
    }
  }

  Rows Logits(int64_t step, int64_t b) const {
    Rows x(spec_.positions, Row(spec_.width));
    for (int64_t t = 0; t < spec_.positions; ++t) {
      const int64_t token = data_.batches.tokens[data_.batches.Index(step, b, t)];
      for (int64_t c = 0; c < spec_.width; ++c) x[t][c] = At("embed.weight", token, c) + At("pos.weight", t, c);
    }
    Drop(x, Site::kDropoutEmbedding, step, 0, b);
    for (int64_t l = 0; l < spec_.layers; ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".";
      const Rows qkv = Linear(Norm(x, layer + "norm1"), layer + "attn.qkv", 3 * spec_.width);
      Rows z = Linear(Heads(qkv, step, l, b), layer + "attn.out", spec_.width);
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
    const Rows h = Norm(x, "norm");
    Rows logits(spec_.positions, Row(spec_.vocab, 0));
    for (int64_t t = 0; t < spec_.positions; ++t) {
      for (int64_t v = 0; v < spec_.vocab; ++v) {
        for (int64_t c = 0; c < spec_.width; ++c) {
          logits[t][v] += h[t][c] * At(spec_.tied_head ? "embed.weight" : "head.weight", v, c);
        }
      }
    }
    return logits;
  }

  const CaseData& data_;
  const contract::Gpt2Spec& spec_;
};

// Weights ten times larger than GPT-2's, so that softmax and GELU are far from linear.
CaseData MakeCase(const contract::Gpt2Spec& model, DType storage, int64_t accumulation) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kSgd;
  config.storage = storage;
  CaseData data = MakeRealCase(model, config, /*steps=*/2, /*batch=*/6, accumulation);
  for (contract::RealParameterState& state : data.real_state) {
    for (float& value : state.master) value *= std::abs(value) < 0.3f ? 10 : 1;
  }
  return data;
}

double WitnessLoss(const CaseData& data, int64_t step) {
  RealTrainer trainer(data);
  double loss = 0;
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) loss += trainer.Forward(step, a);
  return loss;
}

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
      const CaseData data = MakeCase(model, DType::kF64, accumulation);
      for (const int64_t step : {0, 1}) EXPECT_NEAR(WitnessLoss(data, step), PlainLoss(data).Of(step), 1e-12);
    }
  }
}

TEST(Gpt2Loss, IsTheDocumentsWithinTheStorageTypesPrecision) {
  for (const contract::Gpt2Spec& model : Models()) {
    const CaseData fp32 = MakeCase(model, DType::kF32, 1), bf16 = MakeCase(model, DType::kBF16, 1);
    EXPECT_NEAR(WitnessLoss(fp32, 1), PlainLoss(fp32).Of(1), 1e-5);
    EXPECT_NEAR(WitnessLoss(bf16, 1), PlainLoss(bf16).Of(1), 0.05);
  }
}

}  // namespace
}  // namespace plumbline::conformance::torch_eager
