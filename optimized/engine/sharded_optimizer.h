// SPDX-License-Identifier: Apache-2.0
// The optimizer of one rank: moments and master weights of its shard, and the update of that shard. It communicates
// nothing; an unsharded optimizer is the case of one shard. Source: docs/exact-family.md, "Optimizers".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "conformance/contract/case_file.h"
#include "optimized/backend/backend.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/flat_buffer.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

class ShardedOptimizer {
 public:
  using GradientOf = std::function<std::span<const float>(const ShardSlice&)>;
  using WeightOf = std::function<Buffer(const ShardSlice&)>;

  // Takes the shard's part of the state that the case begins with.
  ShardedOptimizer(const contract::CaseData& data, const ShardPlan& shard, Backend& backend);

  // Update number t (1 in the first step) of every slice; writes the slice's working weights to where `weight` says, in
  // storage type.
  void Step(int64_t t, const GradientOf& gradient, const WeightOf& weight);

  bool has_moment() const { return has_moment_; }
  std::span<float> Moment(const ShardSlice& slice) const {
    return moment_.Span<float>(slice.shard_offset, slice.elems());
  }
  std::span<float> Master(const ShardSlice& slice) const {
    return master_.Span<float>(slice.shard_offset, slice.elems());
  }

 private:
  template <typename T>
  void StepTyped(int64_t t, const GradientOf& gradient, const WeightOf& weight);

  const ShardPlan& shard_;
  contract::DType storage_;
  int64_t weight_bound_;
  bool has_moment_;
  FlatBuffer moment_;
  FlatBuffer master_;
};

}  // namespace plumbline::optimized
