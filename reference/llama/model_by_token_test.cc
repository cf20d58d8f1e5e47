// SPDX-License-Identifier: Apache-2.0
// The loss computed a second time, another way: one token after the other with the keys and values of those before it,
// in plain numbers, rotations as complex products, key/value heads repeated for the queries that share them, and a
// sample simply over at its end. It shares no op with the model, only the documents.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "conformance/contract/random_stream.h"
#include "reference/llama/model.h"
#include "reference/testing/small_llama.h"

namespace plumbline::reference::llama {
namespace {

using Row = std::vector<double>;

constexpr uint64_t kSeed = 5;
constexpr int64_t kStep = 3;

// One sample.
class TokenByToken {
 public:
  TokenByToken(const contract::LlamaSpec& spec, const ModelTensors& weights, int64_t sample)
      : spec_(spec), weights_(weights), sample_(sample), layers_(weights.layers.size()) {}

  // The logits after the next token.
  Row Next(int64_t token) {
    Row x;
    for (int64_t c = 0; c < spec_.width; ++c) x.push_back(weights_.embed(token, c));
    Drop(x, contract::Site::kDropoutEmbedding, 0);
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      const LayerTensors& w = weights_.layers[static_cast<size_t>(layer)];
      Row y = Times(Attention(layer, Norm(x, w.norm1)), w.out);
      AddDropped(x, y, contract::Site::kDropoutAttentionOut, layer);
      const Row h = Norm(x, w.norm2);
      const Row up = Times(h, w.up);
      Row inner = Times(h, w.gate);
      for (size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
      y = Times(inner, w.down);
      AddDropped(x, y, contract::Site::kDropoutMlpOut, layer);
    }
    const Row h = Norm(x, weights_.norm);
    Row logits;
    for (int64_t v = 0; v < spec_.vocab; ++v) {
      logits.push_back(0);
      for (int64_t c = 0; c < spec_.width; ++c) logits.back() += h[static_cast<size_t>(c)] * weights_.head(v, c);
    }
    ++position_;
    return logits;
  }

 private:
  // Of one layer, by position: the keys (turned) and values of each query head.
  struct Past {
    std::vector<Row> keys, values;
  };

  static Row Times(const Row& x, const Matrix& w) {
    Row y(static_cast<size_t>(w.cols()));
    for (int64_t r = 0; r < w.rows(); ++r)
      for (int64_t c = 0; c < w.cols(); ++c) y[static_cast<size_t>(c)] += x[static_cast<size_t>(r)] * w(r, c);
    return y;
  }

  Row Norm(const Row& x, const Matrix& weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    Row y;
    for (size_t c = 0; c < x.size(); ++c)
      y.push_back(x[c] / std::sqrt(squares / static_cast<double>(x.size()) + spec_.norm_epsilon) *
                  weight(0, static_cast<int64_t>(c)));
    return y;
  }

  double Kept(contract::Site site, int64_t layer, int64_t element) const {
    const auto limit = static_cast<uint32_t>(std::floor(spec_.dropout * 4294967296.0));
    return contract::Draw(kSeed, site, kStep, layer, element) >= limit ? 1 / (1 - spec_.dropout) : 0;
  }

  void Drop(Row& y, contract::Site site, int64_t layer) const {
    const int64_t first = (sample_ * spec_.positions + position_) * spec_.width;
    for (size_t c = 0; c < y.size(); ++c) y[c] *= Kept(site, layer, first + static_cast<int64_t>(c));
  }

  void AddDropped(Row& x, Row& y, contract::Site site, int64_t layer) const {
    Drop(y, site, layer);
    for (size_t c = 0; c < x.size(); ++c) x[c] += y[c];
  }

  // Each head's pairs of channels (i, i + D/2) as complex numbers times e^(ia).
  Row Turned(const Row& y) const {
    const auto head_width = static_cast<size_t>(spec_.head_width());
    Row result = y;
    for (size_t c = 0; c < y.size(); ++c) {
      const size_t i = c % head_width;
      if (i >= head_width / 2) continue;
      const double frequency =
          1 / std::pow(spec_.rope_theta, 2 * static_cast<double>(i) / static_cast<double>(head_width));
      const std::complex<double> z = std::complex<double>(y[c], y[c + head_width / 2]) *
                                     std::polar(1.0, static_cast<double>(position_) * frequency);
      result[c] = z.real();
      result[c + head_width / 2] = z.imag();
    }
    return result;
  }

  // Each key/value head H / K times in a row: as wide as the queries.
  Row Repeated(const Row& y) const {
    Row result;
    for (int64_t kv_head = 0; kv_head < spec_.kv_heads; ++kv_head)
      for (int64_t copy = 0; copy < spec_.heads / spec_.kv_heads; ++copy)
        for (int64_t c = 0; c < spec_.head_width(); ++c)
          result.push_back(y[static_cast<size_t>(kv_head * spec_.head_width() + c)]);
    return result;
  }

  Row Attention(int64_t layer, const Row& h) {
    const LayerTensors& w = weights_.layers[static_cast<size_t>(layer)];
    Past& past = layers_[static_cast<size_t>(layer)];
    past.keys.push_back(Repeated(Turned(Times(h, w.k))));
    past.values.push_back(Repeated(Times(h, w.v)));
    const Row q = Turned(Times(h, w.q));
    Row o(q.size());
    for (int64_t head = 0; head < spec_.heads; ++head) AttendTo(past, layer, head, q, o);
    return o;
  }

  void AttendTo(const Past& past, int64_t layer, int64_t head, const Row& q, Row& o) const {
    const auto first = static_cast<size_t>(head * spec_.head_width());
    const auto last = first + static_cast<size_t>(spec_.head_width());
    Row exponentials;
    double sum = 0;
    for (const Row& key : past.keys) {
      double score = 0;
      for (size_t c = first; c < last; ++c) score += q[c] * key[c];
      exponentials.push_back(std::exp(score / std::sqrt(static_cast<double>(spec_.head_width()))));
      sum += exponentials.back();
    }
    for (size_t t = 0; t < past.values.size(); ++t) {
      const int64_t element =
          ((sample_ * spec_.heads + head) * spec_.positions + position_) * spec_.positions + static_cast<int64_t>(t);
      const double weight = exponentials[t] / sum * Kept(contract::Site::kDropoutScores, layer, element);
      for (size_t c = first; c < last; ++c) o[c] += weight * past.values[t][c];
    }
  }

  const contract::LlamaSpec& spec_;
  const ModelTensors& weights_;
  const int64_t sample_;
  int64_t position_ = 0;
  std::vector<Past> layers_;
};

double LossByToken(const contract::LlamaSpec& spec, const ModelTensors& weights, const StepBatch& batch,
                   const std::vector<int64_t>& lengths) {
  double sum = 0, count = 0;
  for (size_t sample = 0; sample < lengths.size(); ++sample) {
    TokenByToken model(spec, weights, static_cast<int64_t>(sample));
    for (int64_t t = 0; t < lengths[sample]; ++t) {
      const size_t n = sample * static_cast<size_t>(spec.positions) + static_cast<size_t>(t);
      const Row logits = model.Next(batch.tokens[n]);
      double exponentials = 0;
      for (const double logit : logits) exponentials += std::exp(logit);
      sum += batch.loss_weights[n] * (std::log(exponentials) - logits[static_cast<size_t>(batch.labels[n])]);
      count += batch.loss_weights[n];
    }
  }
  return sum / count;
}

struct Setting {
  const char* name;
  int64_t heads, kv_heads;
  double dropout;
  std::vector<int64_t> lengths;
};

class ModelByToken : public testing::TestWithParam<Setting> {};

TEST_P(ModelByToken, HasTheSameLoss) {
  contract::LlamaSpec spec = SmallLlama();
  spec.width = GetParam().heads * 4;
  spec.heads = GetParam().heads;
  spec.kv_heads = GetParam().kv_heads;
  spec.dropout = GetParam().dropout;
  spec.norm_epsilon = 0.125;  // seen in every digit
  const ModelTensors weights = RandomLlamaWeights(spec);
  const StepBatch batch = LlamaBatch(spec, GetParam().lengths);
  const double expected = LossByToken(spec, weights, batch, GetParam().lengths);
  EXPECT_NEAR(ModelForward({spec, kSeed, kStep}, weights, batch).loss.loss, expected, 1e-12 * expected);
}

INSTANTIATE_TEST_SUITE_P(Settings, ModelByToken,
                         testing::Values(Setting{"grouped", 4, 2, 0, {5, 5, 5}},
                                         Setting{"groups_of_three", 6, 2, 0, {5, 2, 5}},
                                         Setting{"three_groups", 6, 3, 0, {1, 5, 4}},
                                         Setting{"each_its_own_one_sample", 3, 3, 0, {5}},
                                         Setting{"all_share_one", 3, 1, 0.3, {5, 5}},
                                         Setting{"grouped_dropout_unequal", 4, 2, 0.3, {3, 5, 1}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace plumbline::reference::llama
