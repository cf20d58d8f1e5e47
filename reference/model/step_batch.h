// SPDX-License-Identifier: Apache-2.0
// The global batch of one step, as every family reads it: no rank, no micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/contract/batches.h"

namespace plumbline::reference {

// Entry sample · positions + position. At padding, which samples of unequal length have (docs/semantics.md, "Family
// llama"), the token is kNoToken, the label 0 and u = 0, whatever the case has there: nothing can depend on what no
// model is given.
struct StepBatch {
  std::vector<int64_t> tokens;
  std::vector<int64_t> labels;
  std::vector<double> loss_weights;  // u
};

// `step` counts as the case does, from its first step.
StepBatch BatchOf(const contract::Batches& batches, int64_t step);

}  // namespace plumbline::reference
