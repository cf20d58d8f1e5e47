// SPDX-License-Identifier: Apache-2.0
// Implements step_batch.h.
#include "reference/model/step_batch.h"

#include "reference/ops/embedding.h"

namespace plumbline::reference {

StepBatch BatchOf(const contract::Batches& batches, int64_t step) {
  StepBatch batch;
  for (int64_t sample = 0; sample < batches.batch; ++sample) {
    for (int64_t position = 0; position < batches.positions; ++position) {
      const auto index = static_cast<size_t>(batches.Index(step, sample, position));
      const bool padding = position >= batches.Length(step, sample);
      batch.tokens.push_back(padding ? kNoToken : batches.tokens[index]);
      batch.labels.push_back(padding ? 0 : batches.labels[index]);
      batch.loss_weights.push_back(batches.loss_weights[index]);
    }
  }
  return batch;
}

}  // namespace plumbline::reference
