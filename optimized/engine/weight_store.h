// SPDX-License-Identifier: Apache-2.0
// Where working weights lie, and when: whole on every rank (ZeRO 0 to 2), or in shards that are gathered around each
// use (ZeRO 3). The model sees the table of addresses and the hooks, the optimizer where to write, the trace what is
// held.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/contract/dtype.h"
#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/model/model.h"
#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/frozen_plan.h"
#include "optimized/partition/gather_plan.h"
#include "optimized/partition/shard_plan.h"
#include "optimized/partition/unit_plan.h"

namespace plumbline::optimized {

// Elements of a parameter from `begin` on, in memory of the store.
struct WeightSlice {
  int64_t parameter = 0;  // canonical index
  int64_t begin = 0;      // row-major index in the whole tensor
  Buffer values;
};

class WeightStore : public UnitHooks {
 public:
  // Everything that this rank holds between steps, frozen weights last. Padding is in none of the slices and stays NaN.
  virtual std::vector<WeightSlice> Held() const = 0;

  // The frozen weights, whole.
  virtual std::vector<WeightSlice> Frozen() const = 0;

  // Where the optimizer writes a slice of this rank's shard.
  virtual Buffer Updated(const ShardSlice& slice) const = 0;

  // Before the first micro-batch of a step.
  virtual void BeginStep() = 0;

  // After the update: whole weights become those that all ranks have written.
  virtual void Publish() = 0;
};

struct WeightInputs {
  const BucketPlan& buckets;
  const ShardPlan& shard;
  const FrozenPlan& frozen;
  contract::DType storage;
  Backend& backend;
  Communicator& communicator;
  std::chrono::duration<double> timeout;
  std::vector<void*>& table;  // ParameterMemory::weights
};

// Stages 0 to 2. is_sharded: each rank updates its shard only, so that Publish gathers.
std::unique_ptr<WeightStore> MakeResidentWeights(const WeightInputs& inputs, bool is_sharded);

// Stage 3. The sets of the bucket plan are the groups of the units, in order, and then the persistent parameters.
// Both plans outlive the store.
std::unique_ptr<WeightStore> MakeShardedWeights(const WeightInputs& inputs, const UnitPlan& units,
                                                const GatherPlan& gathers);

}  // namespace plumbline::optimized
