// SPDX-License-Identifier: Apache-2.0
// What one `verify` runs: the selected cases and the truths and defects they need, before anything is started.
// Pure: no files, no processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/metamorphic_cases.h"
#include "conformance/cases/problem.h"
#include "conformance/cases/tier.h"
#include "conformance/contract/case_file.h"
#include "conformance/contract/engine_protocol.h"

namespace plumbline::conformance {

struct Selection {
  std::optional<std::string> case_id;  // exactly this one
  std::optional<std::string> filter;   // shell pattern over ids (fnmatch)
  int64_t shard_index = 1;             // 1 ... shard_count: every shard_count-th case of the selection
  int64_t shard_count = 1;
};

// Which engine runs a case: the one under test, the witness, the switchable copy of ours with every defect off, or ours
// with ranks that are processes.
enum class Role { kCandidate, kWitness, kCleanTwin, kProcesses };

struct PlannedCase {
  std::string id;
  Role role = Role::kCandidate;
  int problem = 0;
  contract::Case spec;  // of family gpt2 the whole trajectory (real_runs.h)
  AxisValues axes;
  std::optional<MetamorphicRelation> relation = std::nullopt;  // judged by it alone: no truth is needed
};

struct Plan {
  CaseList list;  // of which the cases below are a selection
  std::vector<PlannedCase> cases;
};

struct PlanOptions {
  Tier tier = Tier::kSmoke;
  Selection selection;
  uint64_t seed = 1;
  double timeout_s = 60;
  bool with_witness = true;
  bool with_processes = true;
  std::optional<contract::Case> lone;  // in the place of tier, selection, seed and time-out: this one case
};

// For one case that WhyNotJudgeable (lone_case.h) has nothing against.
PlanOptions LonePlanOptions(const contract::Case& spec);

// InvalidArgument if case_id names no case (the nearest id is named). The plan may be empty.
Plan MakePlan(const PlanOptions& options);

// The case of a problem in this layout.
contract::Case CaseOf(const Problem& problem, const std::string& id, const contract::RunConfig& config,
                      const PlanOptions& options);

// Why the description says that the engine cannot run the case, or nothing.
std::optional<std::string> Declined(const contract::EngineDescription& description, const contract::Case& spec);

// The name of the folder in which the traces of one run of this case are kept after a failure. The run knows the case
// by its layout's id, which candidate and clean twin share; their folders differ.
std::string FailureFolder(const PlannedCase& entry, const contract::Case& run);

// Cases on which planted defects are tried: of a family ("exact", "gpt2", "llama"; conformance/cases/defect_layouts.h),
// or those that exist for a small bias ("gpt2/bias"). To those of gpt2 belong the relations of softmaxes, since its
// other cases have no large logits or scores. Problems are numbered as in MakePlan's list.
std::vector<PlannedCase> DefectCases(const std::string& group, const PlanOptions& options);

}  // namespace plumbline::conformance
