// SPDX-License-Identifier: Apache-2.0
// The loss of family gpt2 for one batch in double, forward only: scalar loops over indices as docs/semantics.md writes
// them, one sample and one head at a time. Gradients are finite differences of it, so that no derivative is written
// twice. Shares nothing with the layers that it tests; slow on purpose.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"

namespace plumbline::optimized::naive {

class NaiveGpt2 {
 public:
  using Vector = std::vector<double>;
  using Matrix = std::vector<Vector>;

  NaiveGpt2(const contract::Gpt2Spec& spec, uint64_t seed) : s_(spec), seed_(seed) {}

  // Row-major, by name.
  std::map<std::string, Vector> weights;

  // The share of one sample: sum of u * ce over its tokens, divided by sum_weights.
  double SampleLoss(int64_t step, int64_t sample, std::span<const int32_t> token, std::span<const int32_t> label,
                    std::span<const int32_t> u, double sum_weights) const {
    const Vector &embed = W("embed.weight"), &pos = W("pos.weight");
    Matrix x(s_.positions, Vector(s_.width));
    for (int64_t t = 0; t < s_.positions; ++t) {
      for (int64_t c = 0; c < s_.width; ++c) {
        const double sum = embed[token[t] * s_.width + c] + pos[t * s_.width + c];
        x[t][c] = sum * Kept(16, step, 0, (sample * s_.positions + t) * s_.width + c);
      }
    }
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      const Matrix attention = Attention(prefix, step, sample, layer, LayerNorm(x, prefix + "norm1"));
      AddDropped(x, attention, 18, step, sample, layer);
      Matrix hidden = Linear(LayerNorm(x, prefix + "norm2"), prefix + "mlp.up");
      for (Vector& row : hidden) {
        for (double& value : row) value = Gelu(value);
      }
      AddDropped(x, Linear(hidden, prefix + "mlp.down"), 19, step, sample, layer);
    }
    const Matrix h = LayerNorm(x, "norm");
    const Vector& head = W(s_.tied_head ? "embed.weight" : "head.weight");
    double loss = 0;
    for (int64_t t = 0; t < s_.positions; ++t) {
      Vector logits(s_.vocab, 0);
      double sum = 0;
      for (int64_t v = 0; v < s_.vocab; ++v) {
        for (int64_t c = 0; c < s_.width; ++c) logits[v] += h[t][c] * head[v * s_.width + c];
        sum += std::exp(logits[v]);
      }
      loss += u[t] / sum_weights * (std::log(sum) - logits[label[t]]);
    }
    return loss;
  }

 private:
  const Vector& W(const std::string& name) const { return weights.at(name); }

  // What an element is multiplied with: 0 or 1 / (1 - p).
  double Kept(int64_t site, int64_t step, int64_t layer, int64_t element) const {
    if (s_.dropout == 0) return 1;
    const uint32_t word = contract::Draw(seed_, static_cast<contract::Site>(site), step, layer, element);
    return word >= std::floor(s_.dropout * 4294967296.0) ? 1 / (1 - s_.dropout) : 0;
  }

  void AddDropped(Matrix& x, const Matrix& branch, int64_t site, int64_t step, int64_t sample, int64_t layer) const {
    for (int64_t t = 0; t < s_.positions; ++t) {
      for (int64_t c = 0; c < s_.width; ++c) {
        x[t][c] += branch[t][c] * Kept(site, step, layer, (sample * s_.positions + t) * s_.width + c);
      }
    }
  }

  static double Gelu(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  }

  Matrix LayerNorm(const Matrix& x, const std::string& name) const {
    const Vector &weight = W(name + ".weight"), &bias = W(name + ".bias");
    Matrix out = x;
    const auto width = static_cast<double>(s_.width);
    for (Vector& row : out) {
      double mean = 0, variance = 0;
      for (const double value : row) mean += value / width;
      for (const double value : row) variance += (value - mean) * (value - mean) / width;
      for (int64_t c = 0; c < s_.width; ++c) {
        row[c] = (row[c] - mean) / std::sqrt(variance + s_.norm_epsilon) * weight[c] + bias[c];
      }
    }
    return out;
  }

  Matrix Linear(const Matrix& x, const std::string& name) const {
    const Vector& weight = W(name + ".weight");
    Matrix out(x.size(), W(name + ".bias"));
    const size_t width = out[0].size();
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t k = 0; k < x[t].size(); ++k) {
        for (size_t c = 0; c < width; ++c) out[t][c] += x[t][k] * weight[k * width + c];
      }
    }
    return out;
  }

  Matrix Attention(const std::string& prefix, int64_t step, int64_t sample, int64_t layer, const Matrix& h) const {
    const int64_t d = s_.width, dh = s_.width / s_.heads;
    const Matrix qkv = Linear(h, prefix + "attn.qkv");
    Matrix o(s_.positions, Vector(d, 0));
    for (int64_t head = 0; head < s_.heads; ++head) {
      for (int64_t a = 0; a < s_.positions; ++a) {
        Vector e(a + 1);
        double sum = 0;
        for (int64_t b = 0; b <= a; ++b) {
          double score = 0;
          for (int64_t c = 0; c < dh; ++c) score += qkv[a][head * dh + c] * qkv[b][d + head * dh + c];
          e[b] = std::exp(score / std::sqrt(static_cast<double>(dh)));
          sum += e[b];
        }
        for (int64_t b = 0; b <= a; ++b) {
          const int64_t element = ((sample * s_.heads + head) * s_.positions + a) * s_.positions + b;
          const double p = e[b] / sum * Kept(17, step, layer, element);
          for (int64_t c = 0; c < dh; ++c) o[a][head * dh + c] += p * qkv[b][2 * d + head * dh + c];
        }
      }
    }
    return Linear(o, prefix + "attn.out");
  }

  const contract::Gpt2Spec s_;
  const uint64_t seed_;
};

}  // namespace plumbline::optimized::naive
