// SPDX-License-Identifier: Apache-2.0
// See stage_plan.h.
#include "optimized/partition/stage_plan.h"

#include <algorithm>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

constexpr int64_t kHighestStage = 3;

void RequireStages(std::span<const int64_t> stages) {
  for (const int64_t stage : stages) {
    if (stage == kFrozen || (stage >= 0 && stage <= kHighestStage)) continue;
    contract::Fail(contract::ErrorCode::kInvalidArgument,
                   "a ZeRO stage is " + std::to_string(stage) + "; allowed: 0 to " + std::to_string(kHighestStage));
  }
}

// Canonical indices, ascending.
template <typename Predicate>
std::vector<int64_t> ParametersWhere(std::span<const int64_t> stages, Predicate predicate) {
  std::vector<int64_t> parameters;
  for (size_t parameter = 0; parameter < stages.size(); ++parameter) {
    if (predicate(stages[parameter])) parameters.push_back(static_cast<int64_t>(parameter));
  }
  return parameters;
}

}  // namespace

StagePlan PlanStages(std::span<const std::vector<int64_t>> units, std::span<const int64_t> numels,
                     std::span<const int64_t> stages, int64_t persistence_threshold_elems) {
  RequireStages(stages);
  const std::vector<int64_t> lower = ParametersWhere(stages, [](int64_t stage) { return stage != kHighestStage; });
  StagePlan plan;
  plan.units = PlanUnits(units, numels, persistence_threshold_elems, lower);
  plan.sets = plan.units.groups;
  plan.sets.push_back(plan.units.persistent);
  plan.stage_of_set.assign(plan.sets.size(), kHighestStage);
  for (int64_t stage = kHighestStage - 1; stage >= 0; --stage) {
    plan.sets.push_back(ParametersWhere(stages, [stage](int64_t other) { return other == stage; }));
    plan.stage_of_set.push_back(stage);
  }
  return plan;
}

std::vector<int64_t> StagedBuckets::Degrees(int64_t world) const {
  std::vector<int64_t> degrees(num_buckets, 1);
  std::fill_n(degrees.begin(), num_sharded, world);
  return degrees;
}

StagedBuckets StageBuckets(const StagePlan& plan, const BucketPlan& buckets) {
  StagedBuckets staged;
  for (const Bucket& bucket : buckets.buckets) {
    const int64_t stage = plan.stage_of_set.at(bucket.set);
    staged.num_of_groups += bucket.set < static_cast<int64_t>(plan.units.groups.size()) ? 1 : 0;
    staged.num_reduced_each_time += stage >= 2 ? 1 : 0;
    staged.num_sharded += stage >= 1 ? 1 : 0;
    ++staged.num_buckets;
  }
  return staged;
}

}  // namespace plumbline::optimized
