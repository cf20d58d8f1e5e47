// SPDX-License-Identifier: Apache-2.0
// Implementation of plain_loss.h.
#include "conformance/engines/torch_eager/plain_loss.h"

#include <cmath>

#include "conformance/engines/torch_eager/real_test_run.h"
#include "conformance/engines/torch_eager/real_trainer.h"
#include "conformance/engines/torch_eager/test_case.h"

namespace plumbline::conformance::torch_eager {

using contract::Site;

double PlainLoss::Of(int64_t step) const {
  double sum = 0, sum_weights = 0;
  for (int64_t b = 0; b < data_.batches.batch; ++b) {
    const Rows logits = Logits(step, b);
    for (size_t t = 0; t < logits.size(); ++t) {
      const int64_t at = data_.batches.Index(step, b, static_cast<int64_t>(t));
      double exponentials = 0;
      for (const double logit : logits[t]) exponentials += std::exp(logit);
      const double u = data_.batches.loss_weights[at];
      sum += u * (std::log(exponentials) - logits[t][data_.batches.labels[at]]);
      sum_weights += u;
    }
  }
  return sum / sum_weights;
}

double PlainLoss::At(const std::string& name, int64_t row, int64_t col) const {
  const size_t index = IndexOf(data_, name);
  return data_.real_state[index].master[row * data_.parameters[index].cols + col];
}

Rows PlainLoss::Embedded(int64_t step, int64_t b) const {
  Rows x(data_.batches.Length(step, b), Row(spec_.width));
  for (size_t t = 0; t < x.size(); ++t) {
    const int64_t token = data_.batches.tokens[data_.batches.Index(step, b, static_cast<int64_t>(t))];
    for (int64_t c = 0; c < spec_.width; ++c) x[t][c] = At("embed.weight", token, c);
  }
  return x;
}

Rows PlainLoss::Product(const Rows& x, const std::string& name, int64_t out) const {
  Rows y(x.size(), Row(out, 0));
  for (size_t t = 0; t < x.size(); ++t) {
    for (int64_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < x[t].size(); ++i) y[t][o] += x[t][i] * At(name, static_cast<int64_t>(i), o);
    }
  }
  return y;
}

Rows PlainLoss::TransposedProduct(const Rows& x, const std::string& name, int64_t out) const {
  Rows y(x.size(), Row(out, 0));
  for (size_t t = 0; t < x.size(); ++t) {
    for (int64_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < x[t].size(); ++i) y[t][o] += x[t][i] * At(name, o, static_cast<int64_t>(i));
    }
  }
  return y;
}

double PlainLoss::Kept(Site site, int64_t step, int64_t layer, int64_t element) const {
  if (spec_.dropout == 0) return 1;
  const double word = contract::Draw(data_.spec.seed, site, step, layer, element);
  return word >= std::floor(spec_.dropout * 4294967296.0) ? 1 / (1 - spec_.dropout) : 0;
}

void PlainLoss::Drop(Rows& x, Site site, int64_t step, int64_t layer, int64_t b) const {
  for (size_t t = 0; t < x.size(); ++t) {
    for (int64_t c = 0; c < spec_.width; ++c) {
      x[t][c] *= Kept(site, step, layer, (b * spec_.positions + static_cast<int64_t>(t)) * spec_.width + c);
    }
  }
}

Rows PlainLoss::Attention(const Rows& q, const Rows& k, const Rows& v, int64_t kv_heads, int64_t step, int64_t layer,
                          int64_t b) const {
  const int64_t channels = spec_.width / spec_.heads;
  Rows o(q.size(), Row(spec_.width, 0));
  for (int64_t h = 0; h < spec_.heads; ++h) {
    const int64_t mine = h * channels, theirs = h * kv_heads / spec_.heads * channels;
    for (int64_t query = 0; query < static_cast<int64_t>(q.size()); ++query) {
      Row a;
      double total = 0;
      for (int64_t key = 0; key <= query; ++key) {
        double s = 0;
        for (int64_t c = 0; c < channels; ++c) s += q[query][mine + c] * k[key][theirs + c];
        a.push_back(std::exp(s / std::sqrt(static_cast<double>(channels))));
        total += a.back();
      }
      for (int64_t key = 0; key <= query; ++key) {
        const int64_t element = ((b * spec_.heads + h) * spec_.positions + query) * spec_.positions + key;
        const double weight = a[key] / total * Kept(Site::kDropoutScores, step, layer, element);
        for (int64_t c = 0; c < channels; ++c) o[query][mine + c] += weight * v[key][theirs + c];
      }
    }
  }
  return o;
}

void PlainLoss::Add(Rows& x, const Rows& y) {
  for (size_t t = 0; t < x.size(); ++t) {
    for (size_t c = 0; c < x[t].size(); ++c) x[t][c] += y[t][c];
  }
}

contract::CaseData MakeSteepCase(const contract::ModelSpec& model, contract::DType storage, int64_t accumulation) {
  contract::RunConfig config;
  config.optimizer = contract::OptimizerKind::kSgd;
  config.storage = storage;
  contract::CaseData data = MakeRealCase(model, config, /*steps=*/2, /*batch=*/6, accumulation);
  for (contract::RealParameterState& state : data.real_state) {
    for (float& value : state.master) value *= std::abs(value) < 0.3f ? 10 : 1;
  }
  return data;
}

double WitnessLoss(const contract::CaseData& data, int64_t step) {
  RealTrainer trainer(data);
  double loss = 0;
  for (int64_t a = 0; a < data.spec.config.accumulation_steps; ++a) loss += trainer.Forward(step, a);
  return loss;
}

}  // namespace plumbline::conformance::torch_eager
