// SPDX-License-Identifier: Apache-2.0
// Loss and gradients of family `exact` for one batch in 64-bit integers: loops over indices as docs/exact-family.md
// writes them, one sample and one head at a time. Shares nothing with the layers that it tests; slow on purpose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"

namespace plumbline::optimized::naive {

using Matrix = std::vector<std::vector<int64_t>>;

inline int64_t Phase(int64_t x, int64_t b) { return ((x + b) % (4 * b) + 4 * b) % (4 * b); }
inline int64_t Fold(int64_t x, int64_t b) { return Phase(x, b) <= 2 * b ? Phase(x, b) - b : 3 * b - Phase(x, b); }
inline int64_t Slope(int64_t x, int64_t b) { return Phase(x, b) < 2 * b ? 1 : -1; }

template <typename Function>
Matrix Map(const Matrix& a, Function f) {
  Matrix out = a;
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < a[r].size(); ++c) out[r][c] = f(r, c);
  }
  return out;
}
inline Matrix Transpose(const Matrix& a) {
  Matrix out(a.empty() ? 0 : a[0].size(), std::vector<int64_t>(a.size()));
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < a[r].size(); ++c) out[c][r] = a[r][c];
  }
  return out;
}
inline Matrix Times(const Matrix& a, const Matrix& b) {
  Matrix out(a.size(), std::vector<int64_t>(b[0].size(), 0));
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t c = 0; c < b[0].size(); ++c) out[r][c] += a[r][k] * b[k][c];
    }
  }
  return out;
}
inline Matrix Columns(const Matrix& a, int64_t begin, int64_t count) {
  Matrix out;
  for (const auto& row : a) out.emplace_back(row.begin() + begin, row.begin() + begin + count);
  return out;
}
inline void AddTo(Matrix& sum, const Matrix& a, int64_t column = 0) {
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < a[r].size(); ++c) sum[r][column + c] += a[r][c];
  }
}
inline Matrix Zeros(size_t rows, size_t cols) { return Matrix(rows, std::vector<int64_t>(cols, 0)); }

class NaiveExact {
 public:
  NaiveExact(const contract::ExactSpec& spec, uint64_t seed, std::vector<Matrix> weights)
      : s_(spec), seed_(seed), w_(std::move(weights)) {
    for (const Matrix& weight : w_) gradients.push_back(Zeros(weight.size(), weight[0].size()));
  }

  // Adds one sample's share of loss and gradients.
  void AddSample(int64_t step, int64_t sample, std::span<const int32_t> token, std::span<const int32_t> label,
                 std::span<const int32_t> u, int64_t num_tokens) {
    step_ = step;
    sample_ = sample;
    Matrix x = Zeros(s_.positions, s_.width);
    for (int64_t t = 0; t < s_.positions; ++t) {
      for (int64_t c = 0; c < s_.width; ++c) x[t][c] = w_[0][token[t]][c] + w_[1][t][c];
    }
    Matrix dx = Layers(0, x, [&](const Matrix& last) { return Head(last, label, u, num_tokens); });
    for (int64_t t = 0; t < s_.positions; ++t) {
      for (int64_t c = 0; c < s_.width; ++c) {
        gradients[0][token[t]][c] += dx[t][c];
        gradients[1][t][c] += dx[t][c];
      }
    }
  }

  int64_t loss = 0;
  std::vector<Matrix> gradients;

 private:
  Matrix F(const Matrix& a) const {
    return Map(a, [&](size_t r, size_t c) { return Fold(a[r][c], s_.fold_bound); });
  }
  Matrix G(const Matrix& a) const {
    return Map(a, [&](size_t r, size_t c) { return Fold(a[r][c], s_.gradient_fold_bound); });
  }
  Matrix TimesSlope(const Matrix& a, const Matrix& z) const {
    return Map(a, [&](size_t r, size_t c) { return a[r][c] * Slope(z[r][c], s_.fold_bound); });
  }
  Matrix Drop(const Matrix& a, contract::Site site, int64_t layer) const {
    if (!s_.dropout) return a;
    return Map(a, [&](size_t t, size_t c) {
      const int64_t element = (sample_ * s_.positions + static_cast<int64_t>(t)) * s_.width + static_cast<int64_t>(c);
      return contract::KeepBit(contract::Draw(seed_, site, step_, layer, element)) ? 2 * a[t][c] : 0;
    });
  }

  Matrix Head(const Matrix& x, std::span<const int32_t> label, std::span<const int32_t> u, int64_t num_tokens) {
    const Matrix h = F(x);
    const Matrix logits = Times(h, Transpose(w_[0]));
    Matrix dlogits = Zeros(s_.positions, s_.vocab);
    for (int64_t t = 0; t < s_.positions; ++t) {
      int64_t best = 0;
      for (int64_t v = 0; v < s_.vocab; ++v) best = logits[t][v] > logits[t][best] ? v : best;
      loss += u[t] / num_tokens * (logits[t][best] - logits[t][label[t]]);
      dlogits[t][best] += u[t] / num_tokens;
      dlogits[t][label[t]] -= u[t] / num_tokens;
    }
    AddTo(gradients[0], Times(Transpose(dlogits), h));
    return TimesSlope(G(Times(dlogits, w_[0])), x);
  }

  // Forward of the layers from `layer` on, then `head`, then their backward: returns dx before `layer`.
  template <typename HeadFunction>
  Matrix Layers(int64_t layer, const Matrix& x, const HeadFunction& head) {
    if (layer == s_.layers) return head(x);
    const size_t p = static_cast<size_t>(2 + 6 * layer);
    const int64_t dh = s_.head_width();
    const int64_t group = s_.heads / s_.kv_heads;
    // Attention, forward.
    const Matrix h = F(x);
    const Matrix zq = Times(h, w_[p]), zk = Times(h, w_[p + 1]), zv = Times(h, w_[p + 2]);
    const Matrix q = F(zq), k = F(zk), v = F(zv);
    std::vector<Matrix> zs, a, zo;
    Matrix o = Zeros(s_.positions, s_.width);
    for (int64_t i = 0; i < s_.heads; ++i) {
      const int64_t j = i * s_.kv_heads / s_.heads;
      zs.push_back(Times(Columns(q, i * dh, dh), Transpose(Columns(k, j * dh, dh))));
      a.push_back(Causal(F(zs[i])));
      zo.push_back(Times(a[i], Columns(v, j * dh, dh)));
      AddTo(o, F(zo[i]), i * dh);
    }
    const Matrix zout = Times(o, w_[p + 3]);
    Matrix x_mlp = x;
    AddTo(x_mlp, Drop(F(zout), contract::Site::kDropoutAttention, layer));
    // MLP, forward.
    const Matrix hm = F(x_mlp);
    const Matrix zu = Times(hm, w_[p + 4]);
    const Matrix fu = F(zu);
    const Matrix r = Map(fu, [&](size_t t, size_t c) { return fu[t][c] > 0 ? fu[t][c] : 0; });
    const Matrix zd = Times(r, w_[p + 5]);
    Matrix x_next = x_mlp;
    AddTo(x_next, Drop(F(zd), contract::Site::kDropoutMlp, layer));

    Matrix dx = Layers(layer + 1, x_next, head);
    // MLP, backward.
    Matrix dz = TimesSlope(Drop(dx, contract::Site::kDropoutMlp, layer), zd);
    AddTo(gradients[p + 5], Times(Transpose(r), dz));
    const Matrix dr = TimesSlope(G(Times(dz, Transpose(w_[p + 5]))), zu);
    const Matrix du = Map(dr, [&](size_t t, size_t c) { return fu[t][c] > 0 ? dr[t][c] : 0; });
    AddTo(gradients[p + 4], Times(Transpose(hm), du));
    AddTo(dx, TimesSlope(G(Times(du, Transpose(w_[p + 4]))), x_mlp));
    dx = G(dx);
    // Attention, backward.
    dz = TimesSlope(Drop(dx, contract::Site::kDropoutAttention, layer), zout);
    AddTo(gradients[p + 3], Times(Transpose(o), dz));
    const Matrix d_o = G(Times(dz, Transpose(w_[p + 3])));
    Matrix dq = Zeros(s_.positions, s_.width);
    Matrix dk = Zeros(s_.positions, s_.kv_width()), dv = dk;
    for (int64_t i = 0; i < s_.heads; ++i) {
      const int64_t j = i / group;
      const Matrix dn = TimesSlope(Columns(d_o, i * dh, dh), zo[i]);
      const Matrix da = G(Times(dn, Transpose(Columns(v, j * dh, dh))));
      const Matrix ds = Causal(TimesSlope(da, zs[i]));
      AddTo(dq, G(Times(ds, Columns(k, j * dh, dh))), i * dh);
      AddTo(dk, Times(Transpose(ds), Columns(q, i * dh, dh)), j * dh);
      AddTo(dv, Times(Transpose(a[i]), dn), j * dh);
    }
    const Matrix duq = TimesSlope(dq, zq), duk = TimesSlope(G(dk), zk), duv = TimesSlope(G(dv), zv);
    AddTo(gradients[p], Times(Transpose(h), duq));
    AddTo(gradients[p + 1], Times(Transpose(h), duk));
    AddTo(gradients[p + 2], Times(Transpose(h), duv));
    Matrix dh_sum = Times(duq, Transpose(w_[p]));
    AddTo(dh_sum, Times(duk, Transpose(w_[p + 1])));
    AddTo(dh_sum, Times(duv, Transpose(w_[p + 2])));
    AddTo(dx, TimesSlope(G(dh_sum), x));
    return G(dx);
  }

  Matrix Causal(const Matrix& a) const {
    return Map(a, [&](size_t s, size_t t) { return t <= s ? a[s][t] : 0; });
  }

  const contract::ExactSpec s_;
  uint64_t seed_;
  std::vector<Matrix> w_;
  int64_t step_ = 0;
  int64_t sample_ = 0;
};

}  // namespace plumbline::optimized::naive
