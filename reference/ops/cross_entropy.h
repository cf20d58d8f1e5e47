// SPDX-License-Identifier: Apache-2.0
// The weighted mean of the cross-entropy over the global batch, on given logits, and its adjoint, docs/semantics.md.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/ops/matrix.h"

namespace plumbline::reference {

struct CrossEntropyForwardResult {
  double loss = 0;
  double weight_sum = 0;  // Σ u over all tokens
  Matrix probabilities;   // [tokens, vocab]  softmax of the logits
};

// loss = Σ_n u[n] · ce[n] / Σ_n u[n],   ce[n] = logsumexp(logits[n]) − logits[n, label[n]]
//   logits  [tokens, vocab]
//   labels  [tokens], each in [0, vocab)
//   weights [tokens], u
// Errors: InvalidArgument if Σ u is not above 0.
CrossEntropyForwardResult CrossEntropyForward(const Matrix& logits, const std::vector<int64_t>& labels,
                                              const std::vector<double>& weights);

// dlogits[n] = u[n] / Σ u · (softmax(logits[n]) − onehot(label[n]))   → [tokens, vocab]
Matrix CrossEntropyBackward(const CrossEntropyForwardResult& forward, const std::vector<int64_t>& labels,
                            const std::vector<double>& weights);

}  // namespace plumbline::reference
