// SPDX-License-Identifier: Apache-2.0
// Where gradients lie, and how they become complete: which collective runs when, straight from backward. One
// implementation per ZeRO stage; the optimizer and the model see only this interface. It does no optimizer arithmetic.
// Source of what is communicated: docs/formats.md, "Buckets and the ledger".
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

struct ReducerInputs {
  const BucketPlan& buckets;
  const ShardPlan& shard;
  Backend& backend;
  Communicator& communicator;
  std::chrono::duration<double> timeout;
  bool overlap = true;      // reductions proceed while backward goes on; else each is waited for at once
  bool accumulates = true;  // a step has several micro-batches
};

class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  // Memory of each parameter's gradient for backward, by canonical index; null for one that is in no bucket (frozen).
  virtual std::vector<float*> ParameterGradients() const = 0;

  // Returns whether backward overwrites that memory or adds to it. is_last: no further micro-batch in this step.
  virtual WriteMode BeginMicroBatch(bool is_first, bool is_last) = 0;

  // From backward: this micro-batch's gradient of the parameter is in memory.
  virtual void Ready(int64_t parameter) = 0;

  // After backward. After the last micro-batch's, the gradients of this rank's shard are complete.
  virtual void EndMicroBatch() = 0;

  // The complete gradient of a slice of this rank's shard, until the next step begins. Whoever unscales it writes to
  // it.
  virtual std::span<float> Complete(const ShardSlice& slice) const = 0;
};

// Stage 0: gradients are accumulated whole and all-reduced once a step.
std::unique_ptr<GradientReducer> MakeAllReduceReducer(const ReducerInputs& inputs);
// Stage 1: gradients are accumulated whole and reduce-scattered once a step.
std::unique_ptr<GradientReducer> MakeReduceScatterReducer(const ReducerInputs& inputs);
// Stages 2 and 3: each micro-batch's gradients are reduce-scattered at once; only the shard is accumulated.
std::unique_ptr<GradientReducer> MakeShardedGradientReducer(const ReducerInputs& inputs);

}  // namespace plumbline::optimized
