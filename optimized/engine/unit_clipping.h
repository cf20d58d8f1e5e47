// SPDX-License-Identifier: Apache-2.0
// Clipping by units: the norms of gradient and master weights of each unit over all shards, from one all-reduce, and
// what they make of the gradient, which itself stays as it is (a trace tells it before clipping). Every rank gets the
// same bits in every ZeRO stage. Frozen and exempt parameters have no units. Source: Brock et al. 2021, equation 3;
// docs/semantics.md, "Clipping"; docs/formats.md, "Buckets and the ledger".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "conformance/contract/run_config.h"
#include "optimized/engine/reduced_sums.h"
#include "optimized/partition/norm_unit_plan.h"
#include "optimized/partition/shard_plan.h"

namespace plumbline::optimized {

class UnitClipping {
 public:
  // The shard plan outlives this.
  UnitClipping(const contract::AdaptiveClipping& options, std::span<const UnitForm> forms, const ShardPlan& shard,
               const SumReduction& reduction);

  using ValuesOf = std::function<std::span<const float>(const ShardSlice&)>;
  // Called by all ranks, with what they hold, before the update. Errors: those of the communicator.
  void Compute(const ValuesOf& gradient, const ValuesOf& master);

  // Instead, in a step that is skipped: makes the same call. Called by all ranks.
  void Skip();

  // The clipped gradient of consecutive elements of a parameter that is clipped, from `begin` on: each times the factor
  // of its unit.
  void Clip(int64_t parameter, int64_t begin, std::span<const float> gradient, std::span<float> clipped) const;

 private:
  void AddSquares(const ShardSlice& slice, std::span<const float> values, int64_t first_sum);

  const contract::AdaptiveClipping options_;
  const NormUnitPlan plan_;
  const ShardPlan& shard_;
  ReducedSums sums_;            // of the gradients of all units, then of their master weights
  std::vector<float> factors_;  // by unit
};

}  // namespace plumbline::optimized
