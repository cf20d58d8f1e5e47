// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "conformance/contract/digest.h"
#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

std::vector<PlannedCase> AllCases(const CaseList& list, const PlanOptions& options) {
  std::vector<PlannedCase> all;
  for (const CaseSpec& spec : list.cases) {
    const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
    all.push_back({spec.id, Role::kCandidate, spec.problem, CaseOf(problem, spec.id, spec.config, options), spec.axes});
  }
  if (!options.with_witness) return all;
  for (size_t i = 0; i < list.problems.size(); ++i) {
    const Problem& problem = list.problems[i];
    for (DType storage : {DType::kF32, DType::kBF16}) {
      // Same constraint as in exact_cases.cc: wide bounds leave the integers that bf16 holds.
      if (storage == DType::kBF16 && problem.model.weight_bound > 1) continue;
      contract::RunConfig config = PlainConfig(problem);
      config.storage = storage;
      const std::string name = storage == DType::kBF16 ? "bf16" : "fp32";
      const std::string id = "exact/" + problem.name + "/torch_eager-" + name;
      all.push_back({id,
                     Role::kWitness,
                     static_cast<int>(i),
                     CaseOf(problem, id, config, options),
                     {{"problem", problem.name}, {"storage", name}}});
    }
  }
  return all;
}

void DemandCase(const std::vector<PlannedCase>& all, const std::string& id) {
  if (std::any_of(all.begin(), all.end(), [&](const PlannedCase& entry) { return entry.id == id; })) return;
  std::vector<std::string_view> ids;
  for (const PlannedCase& entry : all) ids.push_back(entry.id);
  const auto nearest = contract::Nearest(id, ids);
  contract::Fail(contract::ErrorCode::kInvalidArgument, "--case is \"" + id + "\"; " +
                                                            (nearest ? "did you mean \"" + std::string(*nearest) + "\"?"
                                                                     : "allowed: an id that --list shows"));
}

bool Contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

contract::Case CaseOf(const Problem& problem, const std::string& id, const contract::RunConfig& config,
                      const PlanOptions& options) {
  contract::Case spec;
  spec.id = id;
  spec.model = problem.model;
  spec.config = config;
  // Spread over 64 bits: small seeds would not show an engine that drops the upper half.
  spec.seed = contract::Mix(options.seed + 1);
  spec.steps = problem.steps;
  spec.timeout_s = options.timeout_s;
  return spec;
}

std::vector<int> Plan::Problems() const {
  std::set<int> used;
  for (const PlannedCase& entry : cases) used.insert(entry.problem);
  return {used.begin(), used.end()};
}

Plan MakePlan(const PlanOptions& options) {
  Plan plan;
  plan.list = ExactCases();
  const std::vector<PlannedCase> all = AllCases(plan.list, options);
  const Selection& selection = options.selection;
  if (selection.case_id) DemandCase(all, *selection.case_id);
  int64_t index = 0;
  for (const PlannedCase& entry : all) {
    if (selection.case_id && entry.id != *selection.case_id) continue;
    if (selection.filter && fnmatch(selection.filter->c_str(), entry.id.c_str(), 0) != 0) continue;
    if (index++ % selection.shard_count == selection.shard_index - 1) plan.cases.push_back(entry);
  }
  return plan;
}

std::optional<std::string> Declined(const contract::EngineDescription& description, const contract::Case& spec) {
  const auto lacks = [](const std::string& what) { return "the engine's description does not list " + what; };
  const std::string storage = spec.config.storage == DType::kBF16 ? "bf16" : "fp32";
  const std::string optimizer(contract::Name(spec.config.optimizer));
  const auto& stages = description.zero_stages;
  if (!Contains(description.families, "exact")) return lacks("family exact");
  if (!Contains(description.dtypes, storage)) return lacks("dtype " + storage);
  if (!Contains(description.optimizers, optimizer)) return lacks("optimizer " + optimizer);
  if (std::find(stages.begin(), stages.end(), spec.config.zero_stage) == stages.end()) {
    return lacks("zero stage " + std::to_string(spec.config.zero_stage));
  }
  if (spec.config.data_degree > description.max_data_degree) {
    return "the engine's max_data_degree is " + std::to_string(description.max_data_degree);
  }
  if (spec.model.exact().dropout && !description.Has("dropout")) return lacks("feature dropout");
  if (spec.model.exact().heads != spec.model.exact().kv_heads && !description.Has("grouped_heads")) {
    return lacks("feature grouped_heads");
  }
  if (spec.config.accumulation_steps > 1 && !description.Has("accumulation")) return lacks("feature accumulation");
  return std::nullopt;
}

std::vector<PlannedCase> DefectCases(const PlanOptions& given) {
  // A defect that makes ranks wait for each other is found by the time-out, so it is short: a case takes a fraction of a second.
  constexpr double kMaxTimeoutSeconds = 20;
  PlanOptions options = given;
  options.timeout_s = std::min(options.timeout_s, kMaxTimeoutSeconds);
  // Three values each: strength three of the covering array guarantees that they occur together in some case.
  using Wanted = std::vector<std::pair<std::string, std::string>>;
  const std::vector<Wanted> layouts = {
      {{"data", "2"}, {"zero", "0"}, {"accumulation", "4"}},
      {{"data", "3"}, {"zero", "1"}, {"accumulation", "3"}},
      {{"data", "3"}, {"zero", "2"}, {"accumulation", "4"}},
      {{"data", "4"}, {"zero", "1"}, {"accumulation", "1"}},
      {{"data", "8"}, {"zero", "2"}, {"accumulation", "3"}},
      {{"data", "3"}, {"zero", "3tight"}, {"accumulation", "3"}},
      {{"data", "2"}, {"zero", "3"}, {"accumulation", "4"}},
      {{"problem", "sgd-v19"}, {"data", "8"}, {"accumulation", "4"}},
      {{"problem", "wide-v5"}, {"zero", "2"}, {"accumulation", "4"}},
  };
  const CaseList list = ExactCases();
  std::vector<PlannedCase> chosen;
  for (const Wanted& wanted : layouts) {
    const auto found = std::find_if(list.cases.begin(), list.cases.end(), [&](const CaseSpec& spec) {
      return std::all_of(wanted.begin(), wanted.end(), [&](const auto& value) {
        return std::find(spec.axes.begin(), spec.axes.end(), value) != spec.axes.end();
      });
    });
    contract::Check(found != list.cases.end(), "a layout for defects is one of the cases");
    const Problem& problem = list.problems[static_cast<size_t>(found->problem)];
    chosen.push_back(
        {found->id, Role::kCandidate, found->problem, CaseOf(problem, found->id, found->config, options), found->axes});
  }
  return chosen;
}

}  // namespace plumbline::conformance
