// SPDX-License-Identifier: Apache-2.0
// A small case of family gpt2, made up for tests of the formulas: no data, no traces.
// One layer, width 4, two heads, 5 positions, hidden 7, vocabulary 11. Elements by canonical index, and padded to 32:
//   0 embed 44 (64)   1 pos 20 (32)   2 ... 13 layer 4, 4, 48, 12, 16, 4, 4, 4, 28, 7, 28, 4 (64 for 48, else 32)
//   14, 15 norm 4, 4 (32 each)   and, where they are there, head 44 (64) and unused 15 (32), last
// The layer has 163 elements (416); all of the tied model 235 (576).
#pragma once

#include "conformance/contract/case_file.h"

namespace plumbline::conformance {

// Everything in one bucket; under stage 3 nothing is persistent, stays or comes early.
inline contract::Case ExampleGpt2(int64_t world, int64_t stage) {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.positions = 5;
  model.hidden = 7;
  model.vocab = 11;
  contract::Case spec;
  spec.id = "example-gpt2";
  spec.model = model;
  spec.config.train_batch_size = 2 * world;
  spec.config.micro_batch_size = 2;
  spec.config.data_degree = world;
  spec.config.zero_stage = stage;
  spec.config.reduce_bucket_elems = 1000;
  spec.config.persistence_threshold_elems = 0;
  spec.config.prefetch_bucket_elems = 0;
  spec.config.max_live_elems = 0;
  spec.config.optimizer = contract::OptimizerKind::kAdamW;
  spec.steps = 1;
  return spec;
}

// Two layers with stages of their own. With two ranks a layer's bucket has 448 padded elements, and that of all others,
// where they are in one, 192.
inline contract::Case ExampleOfLayerStages(int64_t first, int64_t second, int64_t others, int64_t accumulation) {
  contract::Case spec = ExampleGpt2(2, others);
  spec.model.gpt2().layers = 2;
  spec.config.layer_stages = {first, second};
  spec.config.accumulation_steps = accumulation;
  return spec;
}

}  // namespace plumbline::conformance
