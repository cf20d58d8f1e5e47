// SPDX-License-Identifier: Apache-2.0
// What the optimizers of the real families share: the state of the case, parameter groups, the schedule, and gradients
// as clipping leaves them. Implementations: real_optimizer.cc (those that see single elements), lamb_optimizer.cc.
#pragma once

#include <algorithm>
#include <array>
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
  };
  Rates RatesOf(const ShardSlice& slice, const UpdateNumbers& numbers) const;

  // Calls visit(offset, gradient, scale) for consecutive parts of the slice, all but the last of a multiple of 32
  // elements: scale times gradient is the clipped gradient of the elements from `offset` of the slice on.
  template <typename Visit>
  void ForEachClippedPart(const UpdateNumbers& numbers, const ShardSlice& slice, std::span<const float> gradient,
                          Visit visit) const;

  const contract::RunConfig& config_;

 private:
  std::vector<GroupOptions> options_;  // by canonical index, before the schedule
};

template <typename Visit>
void RealOptimizer::ForEachClippedPart(const UpdateNumbers& numbers, const ShardSlice& slice,
                                       std::span<const float> gradient, Visit visit) const {
  const bool clips = options_[slice.parameter].clips;
  if (!clips || numbers.units == nullptr) {
    visit(0, gradient, clips ? numbers.gradient_scale : 1);
    return;
  }
  constexpr int64_t kPartElems = 2048;  // stays in the cache
  std::array<float, kPartElems> clipped;
  for (int64_t offset = 0; offset < slice.elems(); offset += kPartElems) {
    const int64_t elems = std::min(kPartElems, slice.elems() - offset);
    const std::span<float> part = std::span(clipped).first(elems);
    numbers.units->Clip(slice.parameter, slice.begin + offset, gradient.subspan(offset, elems), part);
    visit(offset, std::span<const float>(part), 1.0);
  }
}

std::unique_ptr<ShardedOptimizer> MakeLambOptimizer(const contract::CaseData& data, const ShardPlan& shard,
                                                    const SumReduction& reduction, Backend& backend);

}  // namespace plumbline::optimized
