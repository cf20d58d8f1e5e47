// SPDX-License-Identifier: Apache-2.0
// The exact family's decoder, forward and backward by hand, over the whole global batch at once: docs/exact-family.md
// from top to bottom. Knows no rank, shard, stage or micro-batch, and no optimizer.
//   ModelTape tape = ModelForward(step, weights, batch);
//   ModelTensors<Sum> gradients = ModelBackward(step, weights, batch, tape);
#pragma once

#include <cstdint>
#include <vector>

#include "reference/model/attention_block.h"
#include "reference/model/mlp_block.h"
#include "reference/model/model_tensors.h"
#include "reference/model/step_batch.h"
#include "reference/model/step_context.h"
#include "reference/ops/loss.h"
#include "reference/ops/matrix.h"
#include "reference/ops/sum.h"

namespace plumbline::reference {

struct ModelTape {
  std::vector<AttentionTape> attention;  // [layers]
  std::vector<MlpTape> mlp;              // [layers]
  Matrix x;                              // [N, d]  the last residual stream
  Matrix h;                              // [N, d]  F(x)
  LossForwardResult loss;
};

// Errors: InvalidArgument if no token has weight.
ModelTape ModelForward(const StepContext& step, const ModelTensors<Matrix>& weights, const StepBatch& batch);

// The complete gradient D of each parameter: plain sums, not folded.
ModelTensors<Sum> ModelBackward(const StepContext& step, const ModelTensors<Matrix>& weights, const StepBatch& batch,
                                const ModelTape& tape);

}  // namespace plumbline::reference
