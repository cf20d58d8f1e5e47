// SPDX-License-Identifier: Apache-2.0
// Implements cross_entropy.h.
#include "reference/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

// log Σ_v exp(logits[n, v]); the largest logit is taken out of the sum, so that no exp overflows.
double LogSumExp(const Matrix& logits, int64_t n) {
  double largest = logits(n, 0);
  for (int64_t v = 1; v < logits.cols(); ++v) largest = std::max(largest, logits(n, v));
  double sum = 0;
  for (int64_t v = 0; v < logits.cols(); ++v) sum += std::exp(logits(n, v) - largest);
  return largest + std::log(sum);
}

}  // namespace

CrossEntropyForwardResult CrossEntropyForward(const Matrix& logits, const std::vector<int64_t>& labels,
                                              const std::vector<double>& weights) {
  contract::Check(static_cast<int64_t>(labels.size()) == logits.rows() && labels.size() == weights.size(),
                  "cross-entropy: a label and a weight for each token");
  CrossEntropyForwardResult result;
  result.probabilities = Matrix(logits.rows(), logits.cols());
  double sum = 0;
  for (int64_t n = 0; n < logits.rows(); ++n) {
    const auto token = static_cast<size_t>(n);
    const double log_sum = LogSumExp(logits, n);
    for (int64_t v = 0; v < logits.cols(); ++v) result.probabilities(n, v) = std::exp(logits(n, v) - log_sum);
    sum += weights[token] * (log_sum - logits(n, labels[token]));
    result.weight_sum += weights[token];
  }
  if (!(result.weight_sum > 0))
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "loss_weights: no token of the step has a weight other than 0");
  result.loss = sum / result.weight_sum;
  return result;
}

Matrix CrossEntropyBackward(const CrossEntropyForwardResult& forward, const std::vector<int64_t>& labels,
                            const std::vector<double>& weights) {
  Matrix dlogits(forward.probabilities.rows(), forward.probabilities.cols());
  for (int64_t n = 0; n < dlogits.rows(); ++n) {
    const auto token = static_cast<size_t>(n);
    const double share = weights[token] / forward.weight_sum;
    for (int64_t v = 0; v < dlogits.cols(); ++v) dlogits(n, v) = share * forward.probabilities(n, v);
    dlogits(n, labels[token]) -= share;
  }
  return dlogits;
}

}  // namespace plumbline::reference
