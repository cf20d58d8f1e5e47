// SPDX-License-Identifier: Apache-2.0
// A small model of family llama for tests, with weights and a batch of samples of unequal length.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/model_spec.h"
#include "reference/llama/tensors.h"
#include "reference/model/step_batch.h"
#include "reference/ops/embedding.h"
#include "reference/testing/random_matrix.h"

namespace plumbline::reference {

// No dropout. Two query heads share a key/value head. A head has four channels, the fewest for which a pair of channels
// half a head apart is not a pair of neighbours. Positions, hidden width and vocabulary are other primes; θ is not the
// default.
inline contract::LlamaSpec SmallLlama() {
  contract::LlamaSpec spec;
  spec.layers = 2;
  spec.width = 16;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.positions = 5;
  spec.hidden = 7;
  spec.vocab = 11;
  spec.rope_theta = 100;
  return spec;
}

// Weights far from their initial values, so that softmax, SiLU and norms are all well away from their linear range.
inline llama::ModelTensors RandomLlamaWeights(const contract::LlamaSpec& spec) {
  llama::ModelTensors weights = llama::TensorsFor(spec);
  const std::vector<Matrix*> order = llama::InCanonicalOrder(weights);
  for (const contract::ParameterSpec& parameter : contract::Parameters(spec))
    *order.at(static_cast<size_t>(parameter.tensor_id)) =
        RandomReals(parameter.tensor_id, parameter.rows, parameter.cols, 0.8);
  return weights;
}

inline bool IsPadding(const contract::LlamaSpec& spec, const std::vector<int64_t>& lengths, int64_t n) {
  return n % spec.positions >= lengths[static_cast<size_t>(n / spec.positions)];
}

// A sample for each length. Weighted tokens are two of three.
inline StepBatch LlamaBatch(const contract::LlamaSpec& spec, const std::vector<int64_t>& lengths) {
  StepBatch batch;
  for (int64_t n = 0; n < static_cast<int64_t>(lengths.size()) * spec.positions; ++n) {
    const bool padding = IsPadding(spec, lengths, n);
    batch.tokens.push_back(padding ? kNoToken : (n * n + 1) % spec.vocab);
    batch.labels.push_back(padding ? 0 : (3 * n + 2) % spec.vocab);
    batch.loss_weights.push_back(padding || n % 3 == 1 ? 0 : 1);
  }
  return batch;
}

}  // namespace plumbline::reference
