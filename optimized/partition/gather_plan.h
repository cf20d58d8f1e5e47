// SPDX-License-Identifier: Apache-2.0
// ZeRO 3: when the weights of a group are gathered, ahead of their use where limits allow, and when they are released.
// A plan covers one step of all micro-batches, between two updates, so that weights that stay gathered from forward to
// backward or to the next micro-batch are gathered once. Pure integer arithmetic on the model's order of uses, which is
// declared and not recorded. Source: docs/zero3.md, "The plan of gathers".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::optimized {

// In elements of parameters, padding not counted.
struct GatherLimits {
  int64_t prefetch_elems = 0;  // gathered, or being gathered, before the use that needs it has begun
  int64_t max_live_elems = 0;  // gathered at once; what one use needs is gathered even if it alone is more
};

// What happens around one use of a unit.
struct UnitUse {
  int64_t unit = 0;
  std::vector<int64_t> gather;   // groups whose gathering is begun before the use, in this order
  std::vector<int64_t> release;  // groups that are released after it
  int64_t live_elems = 0;        // gathered or being gathered during the use
};

struct GatherPlan {
  std::vector<UnitUse> uses;
};

// uses: the units of one step in order. InvalidArgument if a limit is negative.
GatherPlan PlanGathers(std::span<const int64_t> uses, std::span<const std::vector<int64_t>> groups_of_unit,
                       std::span<const int64_t> group_elems, const GatherLimits& limits);

// The uses of a step: for each of its micro-batches forward, then backward.
std::vector<int64_t> UsesOfStep(std::span<const int64_t> forward, std::span<const int64_t> backward,
                                int64_t accumulation_steps);

}  // namespace plumbline::optimized
