// SPDX-License-Identifier: Apache-2.0
// See gather_plan.h. First what must be there, then what may stay (the shortest waits first), then what may come early.
// Each of the three only adds to the elements that are live during a use, which is what the limit is on.
#include "optimized/partition/gather_plan.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "conformance/contract/error.h"

namespace plumbline::optimized {
namespace {

void RequireNotNegative(const char* name, int64_t value) {
  if (value >= 0) return;
  contract::Fail(contract::ErrorCode::kInvalidArgument,
                 std::string(name) + " is " + std::to_string(value) + "; allowed: at least 0");
}

// A group that stays gathered from its first to its last use of these, inclusive.
struct Residence {
  int64_t first_use;
  int64_t last_use;
  int64_t group;
};

class Planner {
 public:
  Planner(std::span<const int64_t> uses, std::span<const std::vector<int64_t>> groups_of_unit,
          std::span<const int64_t> group_elems, const GatherLimits& limits)
      : groups_of_unit_(groups_of_unit), group_elems_(group_elems), limits_(limits) {
    for (const int64_t unit : uses) {
      plan_.uses.push_back({unit, {}, {}, 0});
      for (const int64_t group : groups_of_unit_[unit]) plan_.uses.back().live_elems += group_elems_[group];
    }
  }

  GatherPlan Plan() {
    const std::vector<Residence> residences = Residences();
    for (const Residence& residence : residences) plan_.uses[residence.last_use].release.push_back(residence.group);
    Gather(residences);
    return std::move(plan_);
  }

 private:
  // Whether the group may be live during the uses [begin, end) as well.
  bool Fits(int64_t group, int64_t begin, int64_t end) const {
    for (int64_t use = begin; use < end; ++use) {
      if (plan_.uses[use].live_elems + group_elems_[group] > limits_.max_live_elems) return false;
    }
    return true;
  }

  void Occupy(int64_t group, int64_t begin, int64_t end) {
    for (int64_t use = begin; use < end; ++use) plan_.uses[use].live_elems += group_elems_[group];
  }

  std::vector<std::vector<int64_t>> UsesOfGroups() const {
    std::vector<std::vector<int64_t>> uses_of(group_elems_.size());
    for (size_t use = 0; use < plan_.uses.size(); ++use) {
      for (const int64_t group : groups_of_unit_[plan_.uses[use].unit]) {
        uses_of[group].push_back(static_cast<int64_t>(use));
      }
    }
    return uses_of;
  }

  // Joins uses of a group over the waits between them that fit: the shortest first, of equal ones the earliest. In
  // order of the first use, then of the group.
  std::vector<Residence> Residences() {
    const std::vector<std::vector<int64_t>> uses_of = UsesOfGroups();
    std::vector<std::tuple<int64_t, int64_t, int64_t>> waits;  // length, begin, group
    for (size_t group = 0; group < uses_of.size(); ++group) {
      for (size_t i = 1; i < uses_of[group].size(); ++i) {
        waits.emplace_back(uses_of[group][i] - uses_of[group][i - 1], uses_of[group][i - 1], group);
      }
    }
    std::sort(waits.begin(), waits.end());
    std::vector<std::vector<bool>> stays(group_elems_.size(), std::vector<bool>(plan_.uses.size(), false));
    for (const auto& [length, begin, group] : waits) {
      if (!Fits(group, begin + 1, begin + length)) continue;
      Occupy(group, begin + 1, begin + length);
      stays[group][begin] = true;
    }
    std::vector<Residence> residences;
    for (size_t group = 0; group < uses_of.size(); ++group) {
      bool is_resident = false;
      for (const int64_t use : uses_of[group]) {
        if (!is_resident) residences.push_back({use, use, static_cast<int64_t>(group)});
        residences.back().last_use = use;
        is_resident = stays[group][use];
      }
    }
    std::sort(residences.begin(), residences.end(), [](const Residence& a, const Residence& b) {
      return std::tie(a.first_use, a.group) < std::tie(b.first_use, b.group);
    });
    return residences;
  }

  // Begins each gathering as early as the limits allow, in the order of the uses that need them: nothing overtakes.
  void Gather(const std::vector<Residence>& residences) {
    std::vector<int64_t> free_from(group_elems_.size(), 0);      // the first use before which the group may be gathered
    std::vector<int64_t> ahead_elems_for(plan_.uses.size(), 0);  // of what is gathered early, by its use
    int64_t ahead_elems = 0;
    size_t next = 0;
    for (int64_t use = 0; use < static_cast<int64_t>(plan_.uses.size()); ++use) {
      ahead_elems -= ahead_elems_for[use];
      for (; next < residences.size(); ++next) {
        const auto& [first_use, last_use, group] = residences[next];
        if (first_use > use) {
          if (ahead_elems + group_elems_[group] > limits_.prefetch_elems) break;
          if (free_from[group] > use || !Fits(group, use, first_use)) break;
          ahead_elems += group_elems_[group];
          ahead_elems_for[first_use] += group_elems_[group];
          Occupy(group, use, first_use);
        }
        plan_.uses[use].gather.push_back(group);
        free_from[group] = last_use + 1;
      }
    }
  }

  const std::span<const std::vector<int64_t>> groups_of_unit_;
  const std::span<const int64_t> group_elems_;
  const GatherLimits limits_;
  GatherPlan plan_;
};

}  // namespace

GatherPlan PlanGathers(std::span<const int64_t> uses, std::span<const std::vector<int64_t>> groups_of_unit,
                       std::span<const int64_t> group_elems, const GatherLimits& limits) {
  RequireNotNegative("stage3_prefetch_bucket_size", limits.prefetch_elems);
  RequireNotNegative("stage3_max_live_parameters", limits.max_live_elems);
  return Planner(uses, groups_of_unit, group_elems, limits).Plan();
}

std::vector<int64_t> UsesOfStep(std::span<const int64_t> forward, std::span<const int64_t> backward,
                                int64_t accumulation_steps) {
  std::vector<int64_t> uses;
  for (int64_t a = 0; a < accumulation_steps; ++a) {
    uses.insert(uses.end(), forward.begin(), forward.end());
    uses.insert(uses.end(), backward.begin(), backward.end());
  }
  return uses;
}

}  // namespace plumbline::optimized
