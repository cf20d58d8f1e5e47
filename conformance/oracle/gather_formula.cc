// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/gather_formula.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace plumbline::conformance {
namespace {

constexpr size_t kEmbed = 0;
constexpr size_t kPosition = 1;
constexpr size_t kFirstLayer = 2;
constexpr size_t kParametersOfALayer = 6;

// Units of the model, by number: 0 the embedding, 1 ... L the layers, L + 1 the head.
std::vector<std::vector<size_t>> UnitParameters(const contract::ExactSpec& model) {
  std::vector<std::vector<size_t>> units = {{kEmbed, kPosition}};
  for (size_t layer = 0; layer < static_cast<size_t>(model.layers); ++layer) {
    std::vector<size_t>& unit = units.emplace_back();
    for (size_t i = 0; i < kParametersOfALayer; ++i) unit.push_back(kFirstLayer + layer * kParametersOfALayer + i);
  }
  units.push_back({kEmbed});
  return units;
}

// The unit of each use in one step: forward, then backward down to the first layer, for each micro-batch. The embedding
// reads no weight in backward.
std::vector<size_t> Uses(const contract::ExactSpec& model, int64_t accumulation) {
  const auto head = static_cast<size_t>(model.layers) + 1;
  std::vector<size_t> uses;
  for (int64_t micro_batch = 0; micro_batch < accumulation; ++micro_batch) {
    for (size_t unit = 0; unit <= head; ++unit) uses.push_back(unit);
    for (size_t unit = head; unit >= 1; --unit) uses.push_back(unit);
  }
  return uses;
}

struct Group {
  std::set<size_t> units;
  std::vector<size_t> parameters;  // descending
  int64_t elems = 0;
};

// Parameters that are not persistent, by the set of units that read them; by largest index, descending.
std::vector<Group> Groups(const std::vector<contract::ParameterSpec>& parameters,
                          const std::vector<std::vector<size_t>>& units, int64_t threshold) {
  std::map<std::set<size_t>, Group> by_units;
  for (size_t parameter = parameters.size(); parameter-- > 0;) {
    if (parameters[parameter].numel() < threshold) continue;
    std::set<size_t> readers;
    for (size_t unit = 0; unit < units.size(); ++unit) {
      if (std::find(units[unit].begin(), units[unit].end(), parameter) != units[unit].end()) readers.insert(unit);
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

// Two consecutive uses of a group; between them it may stay gathered.
struct Wait {
  size_t length, begin, end, group;
  auto Order() const { return std::tuple(length, begin, group); }
};

// How often each group is gathered in a step.
std::vector<int64_t> Gathers(const std::vector<Group>& groups, const std::vector<size_t>& uses, int64_t max_live) {
  std::vector<int64_t> live(uses.size());
  std::vector<int64_t> gathers(groups.size());
  std::vector<Wait> waits;
  for (size_t group = 0; group < groups.size(); ++group) {
    size_t last = uses.size();
    for (size_t use = 0; use < uses.size(); ++use) {
      if (!groups[group].units.contains(uses[use])) continue;
      live[use] += groups[group].elems;
      ++gathers[group];
      if (last != uses.size()) waits.push_back({use - last, last, use, group});
      last = use;
    }
  }
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.Order() < b.Order(); });
  for (const Wait& wait : waits) {
    const int64_t elems = groups[wait.group].elems;
    const auto begin = live.begin() + static_cast<int64_t>(wait.begin) + 1;
    const auto end = live.begin() + static_cast<int64_t>(wait.end);
    if (!std::all_of(begin, end, [&](int64_t elsewhere) { return elsewhere + elems <= max_live; })) continue;
    std::for_each(begin, end, [&](int64_t& elsewhere) { elsewhere += elems; });
    --gathers[wait.group];
  }
  return gathers;
}

}  // namespace

std::vector<GatherSet> GatherSets(const contract::ExactSpec& model, const contract::RunConfig& config) {
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
  const std::vector<Group> groups = Groups(parameters, UnitParameters(model), config.persistence_threshold_elems);
  const std::vector<int64_t> gathers = Gathers(groups, Uses(model, config.accumulation_steps), config.max_live_elems);
  std::vector<GatherSet> sets;
  for (size_t i = 0; i < groups.size(); ++i) sets.push_back({groups[i].parameters, gathers[i]});
  GatherSet persistent{{}, 1};  // gathered once, after the update
  for (size_t parameter = parameters.size(); parameter-- > 0;) {
    if (parameters[parameter].numel() < config.persistence_threshold_elems) persistent.parameters.push_back(parameter);
  }
  if (!persistent.parameters.empty()) sets.push_back(std::move(persistent));
  return sets;
}

}  // namespace plumbline::conformance
