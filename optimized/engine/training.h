// SPDX-License-Identifier: Apache-2.0
// Everything that one rank trains with, built by Parallelize and driven by TrainStep. Holds; does nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "conformance/contract/case_file.h"
#include "optimized/backend/backend.h"
#include "optimized/backend/memory_guards.h"
#include "optimized/backend/memory_ledger.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/gradient_norm.h"
#include "optimized/engine/gradient_reducer.h"
#include "optimized/engine/sharded_optimizer.h"
#include "optimized/engine/unit_clipping.h"
#include "optimized/engine/weight_store.h"
#include "optimized/model/model.h"
#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/frozen_plan.h"
#include "optimized/partition/gather_plan.h"
#include "optimized/partition/shard_plan.h"
#include "optimized/partition/stage_plan.h"
#include "optimized/partition/unit_plan.h"

namespace plumbline::optimized {

// Members are declared in the order in which they depend on each other.
struct Training {
  const contract::CaseData* data = nullptr;
  Communicator* communicator = nullptr;
  std::chrono::duration<double> timeout{};

  MemoryLedger memory_ledger;
  MemoryGuards memory_guards;
  std::unique_ptr<Backend> backend;
  UnitPlan units;      // ZeRO 3
  GatherPlan gathers;  // ZeRO 3
  BucketPlan buckets;
  StagedBuckets staged;  // what their stages say of them
  ShardPlan shard;       // the part of each bucket that this rank updates
  FrozenPlan frozen;     // what is in no bucket
  ParameterMemory memory;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<GradientReducer> reducer;
  std::unique_ptr<ShardedOptimizer> optimizer;
  std::unique_ptr<GradientNorm> norm;           // null in family exact
  std::unique_ptr<UnitClipping> unit_clipping;  // null unless units are clipped
  contract::NormHistory norm_history;           // with clipping by history; a skipped step leaves it
  contract::LossScaler loss_scaler;             // with a dynamic loss scale; a skipped step counts
  int64_t num_updates = 0;                      // made so far; a skipped step makes none
  std::unique_ptr<Model> model;

  // Numbers and calls of the step in progress. They live here, not on TrainStep's stack: while an error unwinds, a
  // handle that is destroyed aborts the other ranks, and they would report that instead of the error itself.
  double tokens = 0;
  double loss = 0;
  Handle tokens_reduced;
  Handle loss_reduced;
};

}  // namespace plumbline::optimized
