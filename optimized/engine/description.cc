// SPDX-License-Identifier: Apache-2.0
#include "optimized/engine/description.h"

#include "optimized/engine/run_case.h"

namespace plumbline::optimized {

contract::EngineDescription Description(RanksAre ranks) {
  contract::EngineDescription description;
  description.name = "optimized";
  description.version = "0.1";
  description.starts_itself = ranks == RanksAre::kThreads;
  description.batch = true;
  description.families = {"exact", "gpt2", "llama"};
  description.dtypes = {"fp32", "bf16", "fp16"};
  description.optimizers = {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"};
  description.zero_stages = {0, 1, 2, 3};
  description.max_data_degree = kMaxDataDegree;
  description.features = {
      "dropout",       "grouped_heads", "accumulation", "ledger",          "dump",        "save",        "memory",
      "deterministic", "unit_clipping", "norm_history", "unequal_lengths", "loss_scaler", "layer_stages"};
  return description;
}

}  // namespace plumbline::optimized
