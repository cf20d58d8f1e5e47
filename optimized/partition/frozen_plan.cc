// SPDX-License-Identifier: Apache-2.0
// See frozen_plan.h.
#include "optimized/partition/frozen_plan.h"

#include <string>

#include "conformance/contract/error.h"
#include "optimized/partition/bucket_plan.h"

namespace plumbline::optimized {

FrozenPlan PlanFrozen(std::span<const int64_t> numels, std::span<const int64_t> frozen) {
  FrozenPlan plan;
  int64_t previous = -1;
  for (const int64_t parameter : frozen) {
    if (parameter <= previous || parameter >= static_cast<int64_t>(numels.size())) {
      contract::Fail(contract::ErrorCode::kInvalidArgument,
                     "frozen parameter " + std::to_string(parameter) + " does not exist or does not ascend");
    }
    previous = parameter;
    plan.places.push_back({parameter, plan.total_elems, numels[parameter]});
    plan.total_elems += (numels[parameter] + kAlignmentElems - 1) / kAlignmentElems * kAlignmentElems;
  }
  return plan;
}

}  // namespace plumbline::optimized
