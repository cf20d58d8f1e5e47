// SPDX-License-Identifier: Apache-2.0
// Which parameters are gathered together under ZeRO 3, and which stay gathered. Pure integer arithmetic.
// Source: docs/zero3.md, "Groups".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::optimized {

struct UnitPlan {
  // The parameters that no threshold keeps and that the same units read: one group each, in the order of their largest
  // canonical index, largest first. Parameters of a group ascend.
  std::vector<std::vector<int64_t>> groups;
  std::vector<int64_t> group_elems;  // parameters' own elements, without padding

  std::vector<std::vector<int64_t>> groups_of_unit;  // ascending

  // Parameters with fewer elements than the threshold, ascending. They are whole on every rank, as under ZeRO 2.
  std::vector<int64_t> persistent;
};

// units[u]: the canonical indices that unit u reads; numels by canonical index. What is left out (frozen parameters,
// and those of lower stages) is in no group and not persistent. InvalidArgument if a parameter is in no unit or an
// index does not exist.
UnitPlan PlanUnits(std::span<const std::vector<int64_t>> units, std::span<const int64_t> numels,
                   int64_t persistence_threshold_elems, std::span<const int64_t> left_out = {});

}  // namespace plumbline::optimized
