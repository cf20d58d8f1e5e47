// SPDX-License-Identifier: Apache-2.0
// Family llama's decoder, forward and backward by hand, over the whole global batch at once: docs/semantics.md from top
// to bottom. Knows no rank, shard, stage or micro-batch, and no optimizer; frozen parameters get a gradient here, which
// the trainer drops.
//   ModelTape tape = ModelForward(step, weights, batch);
//   ModelTensors gradients = ModelBackward(step, weights, batch, tape);
//
// Samples of unequal length need nothing here: all T positions of each are computed, and it is the batch's weights that
// end a sample. Padding is on the right, so no query of the sample sees its keys; and it has u = 0, so its rows of
// dlogits are 0, and with them all that comes from them: every other op works on rows by themselves. Its rows begin
// with 0 in place of an embedding (StepBatch), lest a weight that is not finite come in through them: 0 · ∞ is not 0.
#pragma once

#include <optional>
#include <vector>

#include "reference/llama/attention_block.h"
#include "reference/llama/mlp_block.h"
#include "reference/llama/step_context.h"
#include "reference/llama/tensors.h"
#include "reference/model/step_batch.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/matrix.h"
#include "reference/ops/rms_norm.h"

namespace plumbline::reference::llama {

struct ModelTape {
  std::optional<Matrix> mask;            // [N, d]  of drop₀
  std::vector<AttentionTape> attention;  // [layers]
  std::vector<MlpTape> mlp;              // [layers]
  RmsNormForwardResult norm;             // h is norm.y  [N, d]
  CrossEntropyForwardResult loss;
};

// Errors: InvalidArgument if no token has weight.
ModelTape ModelForward(const StepContext& step, const ModelTensors& weights, const StepBatch& batch);

// The complete gradient of each parameter, before clipping; of the unused one, zero.
ModelTensors ModelBackward(const StepContext& step, const ModelTensors& weights, const StepBatch& batch,
                           const ModelTape& tape);

}  // namespace plumbline::reference::llama
