// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/defect_plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace plumbline::conformance {
namespace {

std::vector<PlannedCase> CasesFor(const std::string& family, const VerifyOptions& options) {
  PlanOptions plan = options.plan;
  std::optional<size_t> at_most = options.listed_cases_at_most;
  if (options.listed_defects) plan.timeout_s = options.listed_timeout_s;
  if (!options.listed_defects && !options.all_defects) at_most = kSmokeDefectCases;
  std::vector<PlannedCase> cases = DefectCases(family, plan);
  cases.resize(std::min(cases.size(), at_most.value_or(cases.size())));
  return cases;
}

bool IsOfShard(int64_t index, const Selection& selection) {
  return index % selection.shard_count == selection.shard_index - 1;
}

PlannedCase TwinOf(PlannedCase entry, const VerifyOptions& options) {
  entry.role = Role::kCleanTwin;
  if (options.listed_defects) entry.spec.timeout_s = options.plan.timeout_s;
  entry.id = "clean-twin/" + entry.id;
  return entry;
}

}  // namespace

DefectPlan PlanDefects(const VerifyOptions& options) {
  DefectPlan plan;
  if (!options.run_defects) return plan;
  const Selection& selection = options.plan.selection;
  int64_t index = 0;
  for (const ListedDefect& listed :
       options.listed_defects ? *options.listed_defects : PlantedDefects(options.all_defects)) {
    if (!plan.cases.contains(listed.family)) plan.cases[listed.family] = CasesFor(listed.family, options);
    if (IsOfShard(index++, selection)) plan.defects.push_back(listed);
  }
  index = 0;
  for (const auto& [family, cases] : plan.cases) {
    for (const PlannedCase& entry : cases) {
      if (IsOfShard(index++, selection)) plan.twins.push_back(TwinOf(entry, options));
    }
  }
  return plan;
}

}  // namespace plumbline::conformance
