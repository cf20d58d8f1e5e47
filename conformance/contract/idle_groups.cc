// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/idle_groups.h"

#include <fnmatch.h>

#include <algorithm>

namespace plumbline::contract {

std::vector<size_t> IdleGroups(const std::vector<ParameterGroup>& groups,
                               const std::vector<ParameterSpec>& parameters) {
  std::vector<bool> has_parameter(groups.size());
  for (const ParameterSpec& parameter : parameters) {
    const auto first = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
      return fnmatch(group.match.c_str(), parameter.name.c_str(), 0) == 0;
    });
    if (first != groups.end()) has_parameter[static_cast<size_t>(first - groups.begin())] = true;
  }
  std::vector<size_t> idle;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!has_parameter[i]) idle.push_back(i);
  }
  return idle;
}

}  // namespace plumbline::contract
