// SPDX-License-Identifier: Apache-2.0
// Where gradients lie, and how they become complete: which collective runs when, straight from backward, for each
// bucket what its ZeRO stage says. The optimizer and the model see only this. It does no optimizer arithmetic. Source
// of what is communicated: docs/formats.md, "Buckets and the ledger".
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/bucket_tracker.h"
#include "optimized/engine/flat_buffer.h"
#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/shard_plan.h"
#include "optimized/partition/stage_plan.h"

namespace plumbline::optimized {

struct ReducerInputs {
  const BucketPlan& buckets;
  const StagedBuckets& staged;
  const ShardPlan& shard;
  Backend& backend;
  Communicator& communicator;
  std::chrono::duration<double> timeout;
  bool overlap = true;      // reductions proceed while backward goes on; else each is waited for at once
  bool accumulates = true;  // a step has several micro-batches
};

// Stage 0: gradients are accumulated whole, and all-reduced once a step. Stage 1: accumulated whole, reduce-scattered
// once a step. Stages 2 and 3: those of each micro-batch are reduce-scattered at once, and only the shard is
// accumulated.
class GradientReducer {
 public:
  explicit GradientReducer(const ReducerInputs& inputs);

  // Memory of each parameter's gradient for backward, by canonical index; null for one that is in no bucket (frozen).
  std::vector<float*> ParameterGradients() const;

  // Returns, by canonical index, whether backward overwrites that memory or adds to it. is_last: no further micro-batch
  // in this step.
  std::span<const WriteMode> BeginMicroBatch(bool is_first, bool is_last);

  // From backward: this micro-batch's gradient of the parameter is in memory.
  void Ready(int64_t parameter);

  // After backward. After the last micro-batch's, the gradients of this rank's shard are complete.
  void EndMicroBatch();

  // The complete gradient of a slice of this rank's shard, until the next step begins. Whoever unscales it writes to
  // it.
  std::span<float> Complete(const ShardSlice& slice) const;

 private:
  bool IsSharded(int64_t bucket) const { return bucket < inputs_.staged.num_sharded; }
  bool IsReducedEachTime(int64_t bucket) const { return bucket < inputs_.staged.num_reduced_each_time; }
  bool ArrivesApart(int64_t bucket) const { return IsReducedEachTime(bucket) && !is_first_; }

  Buffer WholeBucket(int64_t bucket) const;
  CallOptions Options(int64_t bucket) const;
  Buffer Part(int64_t bucket, const FlatBuffer& parts) const;
  Handle Post(int64_t bucket);
  void FinishReductions();
  void AddArrived(int64_t bucket);

  const ReducerInputs inputs_;
  const FlatBuffer whole_;
  const FlatBuffer accumulated_;  // the rank's part of what is sharded
  const FlatBuffer arriving_;     // the rank's part of what a later micro-batch adds
  BucketTracker tracker_;
  std::vector<WriteMode> modes_;  // by canonical index
  bool is_first_ = true, is_last_ = true;

  // After the buffers that the calls use: destroyed first, and destroying a handle makes sure that no other rank
  // touches those buffers any more.
  std::vector<std::pair<int64_t, Handle>> in_flight_;
};

}  // namespace plumbline::optimized
