// SPDX-License-Identifier: Apache-2.0
// What the optimizers of the real families share: the state of the case, parameter groups and the schedule.
// Implementations: real_optimizer.cc (those that see single elements), lamb_optimizer.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "conformance/contract/run_config.h"
#include "optimized/engine/sharded_optimizer.h"
#include "optimized/optimizer/parameter_groups.h"

namespace plumbline::optimized {

class RealOptimizer : public ShardedOptimizer {
 protected:
  RealOptimizer(const contract::CaseData& data, const ShardPlan& shard, Backend& backend);

  // Of a slice in one step.
  struct Rates {
    double lr = 0;
    contract::BetaPair betas;
    double weight_decay = 0;
    double gradient_scale = 1;
  };
  Rates RatesOf(const ShardSlice& slice, const UpdateNumbers& numbers) const;

  const contract::RunConfig& config_;

 private:
  std::vector<GroupOptions> options_;  // by canonical index, before the schedule
};

std::unique_ptr<ShardedOptimizer> MakeLambOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                    const SumReduction& reduction, Backend& backend);

}  // namespace plumbline::optimized
