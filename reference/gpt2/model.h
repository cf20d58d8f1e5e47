// SPDX-License-Identifier: Apache-2.0
// Family gpt2's decoder, forward and backward by hand, over the whole global batch at once: docs/semantics.md from top
// to bottom. Knows no rank, shard, stage or micro-batch, and no optimizer; frozen parameters get a gradient here, which
// the trainer drops.
//   ModelTape tape = ModelForward(step, weights, batch);
//   ModelTensors gradients = ModelBackward(step, weights, batch, tape);
#pragma once

#include <optional>
#include <vector>

#include "reference/gpt2/attention_block.h"
#include "reference/gpt2/mlp_block.h"
#include "reference/gpt2/step_context.h"
#include "reference/gpt2/tensors.h"
#include "reference/model/step_batch.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/matrix.h"

namespace plumbline::reference::gpt2 {

struct ModelTape {
  std::optional<Matrix> mask;            // [N, d]  of drop₀
  std::vector<AttentionTape> attention;  // [layers]
  std::vector<MlpTape> mlp;              // [layers]
  LayerNormForwardResult norm;           // h is norm.y  [N, d]
  CrossEntropyForwardResult loss;
};

// Errors: InvalidArgument if no token has weight.
ModelTape ModelForward(const StepContext& step, const ModelTensors& weights, const StepBatch& batch);

// The complete gradient of each parameter, before clipping; of the unused one, zero.
ModelTensors ModelBackward(const StepContext& step, const ModelTensors& weights, const StepBatch& batch,
                           const ModelTape& tape);

}  // namespace plumbline::reference::gpt2
