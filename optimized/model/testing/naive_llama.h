// SPDX-License-Identifier: Apache-2.0
// The loss of family llama for one batch in double, forward only: scalar loops over indices as docs/semantics.md writes
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

class NaiveLlama {
 public:
  using Vector = std::vector<double>;
  using Matrix = std::vector<Vector>;

  NaiveLlama(const contract::LlamaSpec& spec, uint64_t seed) : s_(spec), seed_(seed) {}

  // Row-major, by name.
  std::map<std::string, Vector> weights;

  // The share of one sample, of as many tokens as are given: sum of u * ce, divided by sum_weights.
  double SampleLoss(int64_t step, int64_t sample, std::span<const int32_t> token, std::span<const int32_t> label,
                    std::span<const int32_t> u, double sum_weights) const {
    const auto length = static_cast<int64_t>(token.size());
    const Vector &embed = W("embed.weight"), &head = W("head.weight");
    Matrix x(length, Vector(s_.width));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t c = 0; c < s_.width; ++c) {
        x[t][c] = embed[token[t] * s_.width + c] * KeptOfStream(16, step, 0, sample, t, c);
      }
    }
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      AddDropped(x, Attention(prefix, step, sample, layer, Rms(x, prefix + "norm1")), 18, step, sample, layer);
      const Matrix h = Rms(x, prefix + "norm2");
      Matrix hidden = Times(h, prefix + "mlp.gate", s_.hidden);
      const Matrix up = Times(h, prefix + "mlp.up", s_.hidden);
      for (int64_t t = 0; t < length; ++t) {
        for (int64_t c = 0; c < s_.hidden; ++c) hidden[t][c] = hidden[t][c] / (1 + std::exp(-hidden[t][c])) * up[t][c];
      }
      AddDropped(x, Times(hidden, prefix + "mlp.down", s_.width), 19, step, sample, layer);
    }
    const Matrix h = Rms(x, "norm");
    double loss = 0;
    for (int64_t t = 0; t < length; ++t) {
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

  // Positions are counted with all of a sample's, also where it has fewer tokens.
  double KeptOfStream(int64_t site, int64_t step, int64_t layer, int64_t sample, int64_t t, int64_t c) const {
    return Kept(site, step, layer, (sample * s_.positions + t) * s_.width + c);
  }

  void AddDropped(Matrix& x, const Matrix& branch, int64_t site, int64_t step, int64_t sample, int64_t layer) const {
    for (size_t t = 0; t < x.size(); ++t) {
      for (int64_t c = 0; c < s_.width; ++c) {
        x[t][c] += branch[t][c] * KeptOfStream(site, step, layer, sample, static_cast<int64_t>(t), c);
      }
    }
  }

  Matrix Rms(const Matrix& x, const std::string& name) const {
    const Vector& weight = W(name + ".weight");
    Matrix out = x;
    for (Vector& row : out) {
      double square = 0;
      for (const double value : row) square += value * value;
      for (int64_t c = 0; c < s_.width; ++c) {
        row[c] *= weight[c] / std::sqrt(square / static_cast<double>(s_.width) + s_.norm_epsilon);
      }
    }
    return out;
  }

  Matrix Times(const Matrix& x, const std::string& name, int64_t width) const {
    const Vector& weight = W(name + ".weight");
    Matrix out(x.size(), Vector(width, 0));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t k = 0; k < x[t].size(); ++k) {
        for (int64_t c = 0; c < width; ++c) out[t][c] += x[t][k] * weight[k * width + c];
      }
    }
    return out;
  }

  // Every head of every token by its position.
  void Turn(Matrix& y, int64_t heads) const {
    const int64_t head_width = s_.width / s_.heads;
    for (size_t t = 0; t < y.size(); ++t) {
      for (int64_t at = 0; at < heads * head_width; ++at) {
        const int64_t i = at % head_width;
        if (i >= head_width / 2) continue;
        const double power = -2.0 * static_cast<double>(i) / static_cast<double>(head_width);
        const double a = static_cast<double>(t) * std::pow(s_.rope_theta, power);
        const double first = y[t][at], second = y[t][at + head_width / 2];
        y[t][at] = first * std::cos(a) - second * std::sin(a);
        y[t][at + head_width / 2] = second * std::cos(a) + first * std::sin(a);
      }
    }
  }

  Matrix Attention(const std::string& prefix, int64_t step, int64_t sample, int64_t layer, const Matrix& h) const {
    const auto length = static_cast<int64_t>(h.size());
    const int64_t d = s_.width, dh = s_.width / s_.heads, e = dh * s_.kv_heads;
    Matrix q = Times(h, prefix + "attn.q", d), k = Times(h, prefix + "attn.k", e);
    const Matrix v = Times(h, prefix + "attn.v", e);
    Turn(q, s_.heads);
    Turn(k, s_.kv_heads);
    Matrix o(length, Vector(d, 0));
    for (int64_t head = 0; head < s_.heads; ++head) {
      const int64_t kv = head * s_.kv_heads / s_.heads;
      for (int64_t a = 0; a < length; ++a) {
        Vector exponential(a + 1);
        double sum = 0;
        for (int64_t b = 0; b <= a; ++b) {
          double score = 0;
          for (int64_t c = 0; c < dh; ++c) score += q[a][head * dh + c] * k[b][kv * dh + c];
          exponential[b] = std::exp(score / std::sqrt(static_cast<double>(dh)));
          sum += exponential[b];
        }
        for (int64_t b = 0; b <= a; ++b) {
          const int64_t element = ((sample * s_.heads + head) * s_.positions + a) * s_.positions + b;
          const double p = exponential[b] / sum * Kept(17, step, layer, element);
          for (int64_t c = 0; c < dh; ++c) o[a][head * dh + c] += p * v[b][kv * dh + c];
        }
      }
    }
    return Times(o, prefix + "attn.out", d);
  }

  const contract::LlamaSpec s_;
  const uint64_t seed_;
};

}  // namespace plumbline::optimized::naive
