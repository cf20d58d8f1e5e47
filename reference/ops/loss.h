// SPDX-License-Identifier: Apache-2.0
// The loss of the exact family on given logits, and its adjoint: the margin by which the best token beats the label.
// The choice of the best token is piecewise constant and has no derivative of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct LossForwardResult {
  int64_t num_weighted_tokens = 0;  // N: tokens whose u is not 0
  std::vector<int64_t> best;        // [tokens]
  double loss = 0;
};

// best[n] = index of the largest logit of token n; of equal logits the smallest index
// loss    = (1 / N) · Σ_n u[n] · (logits[n, best[n]] − logits[n, label[n]])
//   logits  [tokens, vocab]
//   labels  [tokens], each in [0, vocab)
//   weights [tokens], u
// Errors: InvalidArgument if no token has weight.
LossForwardResult LossForward(const Matrix& logits, const std::vector<int64_t>& labels,
                              const std::vector<double>& weights);

// dlogits[n] = (u[n] / N) · (onehot(best[n]) − onehot(label[n])),   0 where best = label   → [tokens, vocab]
Matrix LossBackward(const LossForwardResult& forward, const std::vector<int64_t>& labels,
                    const std::vector<double>& weights, int64_t vocab);

}  // namespace plumbline::reference
