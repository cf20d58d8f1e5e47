// SPDX-License-Identifier: Apache-2.0
// See unit_plan.h. A group is named by the set of its units.
#include "optimized/partition/unit_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

using UnitSet = std::set<int64_t>;

std::vector<UnitSet> UnitsOfParameters(std::span<const std::vector<int64_t>> units, size_t num_parameters) {
  std::vector<UnitSet> readers(num_parameters);
  for (size_t unit = 0; unit < units.size(); ++unit) {
    for (const int64_t parameter : units[unit]) {
      if (parameter < 0 || parameter >= static_cast<int64_t>(num_parameters)) {
        contract::Fail(contract::ErrorCode::kInvalidArgument, "unit " + std::to_string(unit) + " reads parameter " +
                                                                  std::to_string(parameter) + " of " +
                                                                  std::to_string(num_parameters));
      }
      readers[parameter].insert(static_cast<int64_t>(unit));
    }
  }
  return readers;
}

}  // namespace

UnitPlan PlanUnits(std::span<const std::vector<int64_t>> units, std::span<const int64_t> numels,
                   int64_t persistence_threshold_elems, std::span<const int64_t> left_out) {
  const std::vector<UnitSet> readers = UnitsOfParameters(units, numels.size());
  UnitPlan plan;
  std::map<UnitSet, size_t> group_of;
  // In reverse, so that groups come in the order in which backward completes their gradients.
  for (size_t parameter = numels.size(); parameter-- > 0;) {
    const auto index = static_cast<int64_t>(parameter);
    if (readers[parameter].empty()) {
      contract::Fail(contract::ErrorCode::kInvalidArgument,
                     "parameter " + std::to_string(parameter) + " is read by no unit");
    }
    if (std::ranges::find(left_out, index) != left_out.end()) continue;
    if (numels[parameter] < persistence_threshold_elems) {
      plan.persistent.insert(plan.persistent.begin(), index);
      continue;
    }
    const auto [place, is_new] = group_of.insert({readers[parameter], plan.groups.size()});
    if (is_new) {
      plan.groups.emplace_back();
      plan.group_elems.push_back(0);
    }
    std::vector<int64_t>& group = plan.groups[place->second];
    group.insert(group.begin(), index);
    plan.group_elems[place->second] += numels[parameter];
  }
  plan.groups_of_unit.resize(units.size());
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    for (const int64_t unit : readers[plan.groups[group].front()]) {
      plan.groups_of_unit[unit].push_back(static_cast<int64_t>(group));
    }
  }
  return plan;
}

}  // namespace plumbline::optimized
