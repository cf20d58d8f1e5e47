// SPDX-License-Identifier: Apache-2.0
// The norm of the complete gradient over all shards, and whether all of it is finite, from one all-reduce: every rank
// gets the same bits in every ZeRO stage, so that all clip alike and all skip together. Padding is in no slice and is
// not counted. What is exempt from clipping is in no norm, but not exempt from being finite. Source: docs/semantics.md,
// "One step" (norm).
#pragma once

#include <vector>

#include "optimized/engine/reduced_sums.h"
#include "optimized/engine/sharded_optimizer.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

struct GradientNormInputs {
  const ShardPlan& shard;
  std::vector<bool> exempt;  // by canonical index
  SumReduction reduction;
};

class GradientNorm {
 public:
  explicit GradientNorm(const GradientNormInputs& inputs)
      : inputs_(inputs), sum_("gradient norm", 1, inputs.reduction) {}

  struct Result {
    double norm = 0;  // NaN or infinity unless all_finite
    bool all_finite = true;
  };
  // Called by all ranks. Errors: those of the communicator.
  Result Compute(const ShardedOptimizer::GradientOf& gradient);

 private:
  const GradientNormInputs inputs_;
  ReducedSums sum_;
};

}  // namespace plumbline::optimized
