// SPDX-License-Identifier: Apache-2.0
// What the parts of the weight store (weight_store.h) have in common: where a piece of a weight lies, and what they are
// built from.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "conformance/contract/dtype.h"
#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/frozen_plan.h"
#include "optimized/partition/shard_plan.h"
#include "optimized/partition/stage_plan.h"

namespace plumbline::optimized {

// Elements of a parameter from `begin` on, in memory of the store.
struct WeightSlice {
  int64_t parameter = 0;  // canonical index
  int64_t begin = 0;      // row-major index in the whole tensor
  Buffer values;
};

struct WeightInputs {
  const BucketPlan& buckets;
  const StagedBuckets& staged;
  const ShardPlan& shard;
  const FrozenPlan& frozen;
  contract::DType storage;
  Backend& backend;
  Communicator& communicator;
  std::chrono::duration<double> timeout;
  std::vector<void*>& table;  // ParameterMemory::weights
};

}  // namespace plumbline::optimized
