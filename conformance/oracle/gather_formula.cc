// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gather_formula.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/contract/layer_stages.h"
#include "conformance/oracle/unit_formula.h"

namespace plumbline::conformance {
namespace {

struct Group {
  std::set<size_t> units;
  std::vector<size_t> parameters;  // descending
  int64_t elems = 0;
};

bool IsGathered(const contract::ParameterSpec& parameter, const contract::RunConfig& config) {
  return !parameter.frozen && contract::StageOf(config, parameter) == 3 && !IsPersistent(parameter, config);
}

std::vector<GatherSet> ResidentSets(const std::vector<contract::ParameterSpec>& parameters,
                                    const contract::RunConfig& config) {
  std::vector<GatherSet> sets;
  for (const int64_t stage : {3, 2, 1, 0}) {
    GatherSet set{{}, stage, stage == 0 ? 0 : 1};
    for (size_t parameter = parameters.size(); parameter-- > 0;) {
      const contract::ParameterSpec& spec = parameters[parameter];
      if (spec.frozen || IsGathered(spec, config) || contract::StageOf(config, spec) != stage) continue;
      set.parameters.push_back(parameter);
    }
    if (!set.parameters.empty()) sets.push_back(std::move(set));
  }
  return sets;
}

// Parameters that are gathered, by the set of units that read them; by largest index, descending.
std::vector<Group> Groups(const std::vector<contract::ParameterSpec>& parameters,
                          const std::vector<std::vector<size_t>>& reads, const contract::RunConfig& config) {
  std::map<std::set<size_t>, Group> by_units;
  for (size_t parameter = parameters.size(); parameter-- > 0;) {
    if (!IsGathered(parameters[parameter], config)) continue;
    std::set<size_t> readers;
    for (size_t unit = 0; unit < reads.size(); ++unit) {
      if (std::find(reads[unit].begin(), reads[unit].end(), parameter) != reads[unit].end()) readers.insert(unit);
    }
    Group& group = by_units[readers];
    group.units = readers;
    group.parameters.push_back(parameter);
    group.elems += parameters[parameter].numel();
  }
  std::vector<Group> groups;
  for (auto& [readers, group] : by_units) groups.push_back(std::move(group));
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.parameters.front() > b.parameters.front(); });
  return groups;
}

// The time from the gather of a group before use `posted` to its release after use `last`; its first use is `first`.
struct Residence {
  size_t first, last, group, posted;
};

// Two consecutive uses of a group; between them it may stay gathered.
struct Wait {
  size_t length, begin, end, group;
  auto Order() const { return std::tuple(length, begin, group); }
};

class Planner {
 public:
  Planner(const std::vector<Group>& groups, const std::vector<size_t>& uses, const contract::RunConfig& config)
      : groups_(groups), config_(config), live_elems_(uses.size()), uses_of_(groups.size()) {
    for (size_t group = 0; group < groups.size(); ++group) {
      for (size_t use = 0; use < uses.size(); ++use) {
        if (!groups[group].units.contains(uses[use])) continue;
        live_elems_[use] += groups[group].elems;
        uses_of_[group].push_back(use);
      }
    }
  }

  // In the order in which they are gathered. To be called once.
  std::vector<Residence> Residences() {
    std::vector<Residence> residences = JoinUses(WhatStays());
    ComeEarly(residences);
    return residences;
  }

 private:
  // Whether the group may also be in memory during the uses in [begin, end); if so its size is added to them.
  bool Admit(size_t group, size_t begin, size_t end) {
    const int64_t elems = groups_[group].elems;
    for (size_t use = begin; use < end; ++use) {
      if (live_elems_[use] + elems > config_.max_live_elems) return false;
    }
    for (size_t use = begin; use < end; ++use) live_elems_[use] += elems;
    return true;
  }

  // Pass 1. Pairs (group, use): the group is still in memory when this use of it begins.
  std::set<std::pair<size_t, size_t>> WhatStays() {
    std::vector<Wait> waits;
    for (size_t group = 0; group < groups_.size(); ++group) {
      const std::vector<size_t>& uses = uses_of_[group];
      for (size_t i = 1; i < uses.size(); ++i) waits.push_back({uses[i] - uses[i - 1], uses[i - 1], uses[i], group});
    }
    std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.Order() < b.Order(); });
    std::set<std::pair<size_t, size_t>> stays;
    for (const Wait& wait : waits) {
      if (Admit(wait.group, wait.begin + 1, wait.end)) stays.insert({wait.group, wait.end});
    }
    return stays;
  }

  std::vector<Residence> JoinUses(const std::set<std::pair<size_t, size_t>>& stays) const {
    std::vector<Residence> residences;
    for (size_t group = 0; group < groups_.size(); ++group) {
      for (size_t use : uses_of_[group]) {
        if (stays.contains({group, use})) {
          residences.back().last = use;
        } else {
          residences.push_back({use, use, group, use});
        }
      }
    }
    std::sort(residences.begin(), residences.end(), [](const Residence& a, const Residence& b) {
      return std::tuple(a.first, a.group) < std::tuple(b.first, b.group);
    });
    return residences;
  }

  // Pass 2. Residences are posted in their order; each at its first use at the latest.
  void ComeEarly(std::vector<Residence>& residences) {
    size_t next = 0;
    for (size_t use = 0; use < live_elems_.size(); ++use) {
      while (next < residences.size() && residences[next].first == use) ++next;
      while (next < residences.size() && MayComeBefore(use, residences, next)) residences[next++].posted = use;
    }
  }

  // Whether residences[next], whose first use is later, is gathered before this use. The page also demands that no
  // earlier residence of its group lasts to this use or beyond. That follows: between the two lies a use at which pass
  // 1 did not admit the group, and live elements only grow.
  bool MayComeBefore(size_t use, const std::vector<Residence>& residences, size_t next) {
    int64_t ahead_elems = 0;
    for (size_t i = 0; i <= next; ++i) {
      if (residences[i].first > use) ahead_elems += groups_[residences[i].group].elems;
    }
    return ahead_elems <= config_.prefetch_bucket_elems && Admit(residences[next].group, use, residences[next].first);
  }

  const std::vector<Group>& groups_;
  const contract::RunConfig& config_;
  std::vector<int64_t> live_elems_;           // during each use
  std::vector<std::vector<size_t>> uses_of_;  // of each group, ascending
};

std::vector<size_t> UsesOfAStep(const std::vector<size_t>& micro_batch, int64_t accumulation) {
  std::vector<size_t> uses;
  for (int64_t i = 0; i < accumulation; ++i) uses.insert(uses.end(), micro_batch.begin(), micro_batch.end());
  return uses;
}

}  // namespace

bool IsPersistent(const contract::ParameterSpec& parameter, const contract::RunConfig& config) {
  return !parameter.frozen && contract::StageOf(config, parameter) == 3 &&
         parameter.numel() < config.persistence_threshold_elems;
}

GatherPlan PlanGathers(const contract::ModelSpec& model, const contract::RunConfig& config) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  const ModelUnits units = UnitsOf(model);
  const std::vector<Group> groups = Groups(parameters, units.reads, config);
  const std::vector<size_t> uses = UsesOfAStep(units.uses, config.accumulation_steps);
  GatherPlan plan;
  for (const Group& group : groups) plan.groups.push_back({group.parameters});
  plan.resident = ResidentSets(parameters, config);
  plan.live.resize(uses.size());
  plan.posted.resize(uses.size());
  for (const Residence& residence : Planner(groups, uses, config).Residences()) {
    ++plan.groups[residence.group].gathers_per_step;
    plan.posted[residence.posted].push_back(residence.group);
    for (size_t use = residence.posted; use <= residence.last; ++use) plan.live[use].push_back(residence.group);
  }
  for (std::vector<size_t>& groups_of_use : plan.live) std::sort(groups_of_use.begin(), groups_of_use.end());
  return plan;
}

}  // namespace plumbline::conformance
