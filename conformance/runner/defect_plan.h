// SPDX-License-Identifier: Apache-2.0
// What is run for planted defects: which of them, on which cases, and the cases of the clean twin, the switchable copy
// with every defect off. It must pass like the product, or what it shows about defects means nothing. Pure but for the
// lists that it is given.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "conformance/runner/defect_list.h"
#include "conformance/runner/plan.h"
#include "conformance/runner/verify_options.h"

namespace plumbline::conformance {

struct DefectPlan {
  std::vector<ListedDefect> defects;                      // of this shard
  std::map<std::string, std::vector<PlannedCase>> cases;  // by family, of every shard's defects
  std::vector<PlannedCase> twins;                         // of this shard
};

// Empty unless options.run_defects.
DefectPlan PlanDefects(const VerifyOptions& options);

}  // namespace plumbline::conformance
