// SPDX-License-Identifier: Apache-2.0
// Implements loss.h.
#include "reference/ops/loss.h"

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

int64_t Best(const Matrix& logits, int64_t n) {
  int64_t best = 0;
  for (int64_t v = 1; v < logits.cols(); ++v)
    if (logits(n, v) > logits(n, best)) best = v;  // strictly: of equal logits the first stays
  return best;
}

int64_t CountWeighted(const std::vector<double>& weights) {
  int64_t count = 0;
  for (const double u : weights)
    if (u != 0) ++count;
  return count;
}

}  // namespace

LossForwardResult LossForward(const Matrix& logits, const std::vector<int64_t>& labels,
                              const std::vector<double>& weights) {
  contract::Check(static_cast<int64_t>(labels.size()) == logits.rows() && labels.size() == weights.size(),
                  "loss: a label and a weight for each token");
  LossForwardResult result;
  result.num_weighted_tokens = CountWeighted(weights);
  if (result.num_weighted_tokens == 0)
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "loss_weights: no token of the step has a weight other than 0");
  double sum = 0;
  for (int64_t n = 0; n < logits.rows(); ++n) {
    const auto token = static_cast<size_t>(n);
    result.best.push_back(Best(logits, n));
    sum += weights[token] * (logits(n, result.best[token]) - logits(n, labels[token]));
  }
  result.loss = sum / static_cast<double>(result.num_weighted_tokens);
  return result;
}

Matrix LossBackward(const LossForwardResult& forward, const std::vector<int64_t>& labels,
                    const std::vector<double>& weights, int64_t vocab) {
  const auto num_tokens = static_cast<int64_t>(labels.size());
  const auto num_weighted = static_cast<double>(forward.num_weighted_tokens);
  Matrix dlogits(num_tokens, vocab);
  for (int64_t n = 0; n < num_tokens; ++n) {
    const auto token = static_cast<size_t>(n);
    dlogits(n, forward.best[token]) += weights[token] / num_weighted;
    dlogits(n, labels[token]) -= weights[token] / num_weighted;
  }
  return dlogits;
}

}  // namespace plumbline::reference
