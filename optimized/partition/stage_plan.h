// SPDX-License-Identifier: Apache-2.0
// What the ZeRO stages of parameters, which need not be equal, make of them: sets that no bucket crosses, and what
// becomes of each set's buckets. Sets come in descending order of their stages, so that whatever a stage says is true
// of the first so many buckets and of no other. Pure integer arithmetic. Source: docs/formats.md, "Layers of different
// stages".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/partition/bucket_plan.h"
#include "optimized/partition/unit_plan.h"

namespace plumbline::optimized {

inline constexpr int64_t kFrozen = -1;  // in the place of a stage: in no set

struct StagePlan {
  UnitPlan units;  // of the parameters of stage 3

  // The groups of `units`, its persistent parameters, those of stage 2, of stage 1, of stage 0. A set may be empty.
  std::vector<std::vector<int64_t>> sets;
  std::vector<int64_t> stage_of_set;
};

// stages and numels by canonical index; units[u]: the canonical indices that unit u reads. InvalidArgument if a stage
// is none, and as PlanUnits says.
StagePlan PlanStages(std::span<const std::vector<int64_t>> units, std::span<const int64_t> numels,
                     std::span<const int64_t> stages, int64_t persistence_threshold_elems);

// Numbers of buckets, each from the first of the plan on.
struct StagedBuckets {
  int64_t num_of_groups = 0;          // working weights are sharded, and gathered around uses
  int64_t num_reduced_each_time = 0;  // stages 3 and 2: gradients are reduced in every micro-batch, not once a step
  int64_t num_sharded = 0;            // stages 3, 2 and 1: the optimizer's state and what it reads are sharded
  int64_t num_buckets = 0;

  // Into how many parts each bucket is cut, of `world` ranks.
  std::vector<int64_t> Degrees(int64_t world) const;
};

// buckets: those of the plan's sets.
StagedBuckets StageBuckets(const StagePlan& plan, const BucketPlan& buckets);

}  // namespace plumbline::optimized
