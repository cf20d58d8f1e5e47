// SPDX-License-Identifier: Apache-2.0
// The norm of the complete gradient over all shards, and whether all of it is finite, from one all-reduce: every rank
// gets the same bits in every ZeRO stage, so that all clip alike and all skip together. Padding is in no slice and is
// not counted. Source: docs/semantics.md, "One step" (norm).
#pragma once

#include <chrono>

#include "kernels/sum_of_squares/sum_of_squares.h"
#include "optimized/comm/communicator.h"
#include "optimized/engine/sharded_optimizer.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

struct GradientNormInputs {
  const ShardPlan& shard;
  Communicator* communicator;  // null where every rank holds all gradients
  std::chrono::duration<double> timeout;
};

class GradientNorm {
 public:
  explicit GradientNorm(const GradientNormInputs& inputs) : inputs_(inputs) {}

  struct Result {
    double norm = 0;  // NaN or infinity unless all_finite
    bool all_finite = true;
  };
  // Called by all ranks. Errors: those of the communicator.
  Result Compute(const ShardedOptimizer::GradientOf& gradient);

 private:
  const GradientNormInputs inputs_;
  kernels::SquareSum sum_;
  Handle reduced_;  // after what it writes to: destroyed first
};

}  // namespace plumbline::optimized
