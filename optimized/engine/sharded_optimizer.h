// SPDX-License-Identifier: Apache-2.0
// The optimizer of one rank: moments and master weights of its shard, and the update of that shard. An unsharded
// optimizer is the case of one shard. It communicates nothing but sums over shards where an update needs them (LAMB).
// Implementations: modular_optimizer.cc (family exact), real_optimizer.h (the real ones). Source: docs/exact-family.md,
// "Optimizers"; docs/semantics.md, "One step".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "conformance/contract/case_file.h"
#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/flat_buffer.h"
#include "optimized/engine/reduced_sums.h"
#include "optimized/engine/unit_clipping.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

// What an update is told besides gradients.
struct UpdateNumbers {
  int64_t step = 0;                     // of training, from 0: the place in the schedule
  int64_t t = 1;                        // number of this update, from 1; a skipped step has none
  double gradient_scale = 1;            // of clipping, where one factor is that of all
  const UnitClipping* units = nullptr;  // else, of each unit; null where units are not clipped
};

class ShardedOptimizer {
 public:
  using GradientOf = std::function<std::span<const float>(const ShardSlice&)>;
  using WeightOf = std::function<Buffer(const ShardSlice&)>;

  virtual ~ShardedOptimizer() = default;

  // Updates every slice and writes its working weights to where `weight` says, in storage type. Called by all ranks.
  virtual void Step(const UpdateNumbers& numbers, const GradientOf& gradient, const WeightOf& weight) = 0;

  // Instead, in a step that is skipped: makes the calls of any other, and changes nothing. Called by all ranks.
  virtual void Skip() {}

  bool has_moment() const { return num_moments_ >= 1; }
  bool has_second_moment() const { return num_moments_ >= 2; }
  std::span<float> Moment(const ShardSlice& slice) const { return Of(slice, moment_); }
  std::span<float> SecondMoment(const ShardSlice& slice) const { return Of(slice, second_moment_); }
  std::span<float> Master(const ShardSlice& slice) const { return Of(slice, master_); }

 protected:
  // num_moments: 0, 1 or 2.
  ShardedOptimizer(const ShardPlan& shard, int64_t num_moments, Backend& backend)
      : shard_(shard),
        num_moments_(num_moments),
        moment_(backend, num_moments >= 1 ? shard.total_elems : 0, contract::DType::kF32,
                MemoryCategory::kOptimizerState),
        second_moment_(backend, num_moments >= 2 ? shard.total_elems : 0, contract::DType::kF32,
                       MemoryCategory::kOptimizerState),
        master_(backend, shard.total_elems, contract::DType::kF32, MemoryCategory::kOptimizerState) {}

  static std::span<float> Of(const ShardSlice& slice, const FlatBuffer& memory) {
    return memory.Span<float>(slice.shard_offset, slice.elems());
  }

  const ShardPlan& shard() const { return shard_; }

 private:
  const ShardPlan& shard_;
  int64_t num_moments_;
  FlatBuffer moment_;
  FlatBuffer second_moment_;
  FlatBuffer master_;
};

// Both take the shard's part of the state that the case begins with. The case and the plan outlive the optimizer.
std::unique_ptr<ShardedOptimizer> MakeModularOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                       Backend& backend);
std::unique_ptr<ShardedOptimizer> MakeRealOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                    const SumReduction& reduction, Backend& backend);

}  // namespace plumbline::optimized
