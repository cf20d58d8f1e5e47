// SPDX-License-Identifier: Apache-2.0
// Everything that one rank trains with, built by Parallelize and driven by TrainStep. Holds; does nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/contract/case_file.h"
#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/gradient_reducer.h"
#include "optimized/engine/sharded_optimizer.h"
#include "optimized/model/model.h"
#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

// Members are declared in the order in which they depend on each other.
struct Training {
  const contract::CaseData* data = nullptr;
  Communicator* communicator = nullptr;
  std::chrono::duration<double> timeout{};

  std::unique_ptr<Backend> backend;
  BucketPlan buckets;
  ShardPlan shard;                      // of optimizer state: the part of each bucket that this rank updates
  std::unique_ptr<FlatBuffer> weights;  // whole buckets, storage type
  std::unique_ptr<GradientReducer> reducer;
  std::unique_ptr<ShardedOptimizer> optimizer;
  ParameterMemory memory;
  std::unique_ptr<Model> model;
  bool gathers_weights = false;  // each rank updates only its shard of the weights

  // Numbers and calls of the step in progress. They live here, not on TrainStep's stack: while an error unwinds, a
  // handle that is destroyed aborts the other ranks, and they would report that instead of the error itself.
  double tokens = 0;
  double loss = 0;
  Handle tokens_reduced;
  Handle loss_reduced;
  std::vector<Handle> weights_gathered;
};

}  // namespace plumbline::optimized
