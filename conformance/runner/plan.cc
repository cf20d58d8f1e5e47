// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "conformance/cases/bias_cases.h"
#include "conformance/cases/defect_layouts.h"
#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/hinted_cases.h"
#include "conformance/cases/layer_stage_cases.h"
#include "conformance/cases/layouts.h"
#include "conformance/cases/llama_cases.h"
#include "conformance/cases/lone_case.h"
#include "conformance/cases/odd_cases.h"
#include "conformance/cases/process_cases.h"
#include "conformance/contract/digest.h"
#include "conformance/contract/error.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

// Each made once, when it is wanted: a covering array takes from a tenth of a second to some seconds.
template <Tier kTier>
const CaseList& LayoutsOf() {
  static const CaseList list = [] {
    CaseList all = ExactCases(kTier);
    Append(all, Gpt2Cases(kTier));
    Append(all, BiasCases(kTier));
    Append(all, LlamaCases(kTier));
    Append(all, OddCases(kTier));
    return all;
  }();
  return list;
}

const CaseList& AllLayouts(Tier tier) {
  if (tier == Tier::kSmoke) return LayoutsOf<Tier::kSmoke>();
  return tier == Tier::kFull ? LayoutsOf<Tier::kFull>() : LayoutsOf<Tier::kNightly>();
}

// The storage types of the problem's cases.
std::set<DType> StoragesOf(const CaseList& list, size_t problem) {
  std::set<DType> storages;
  for (const CaseSpec& spec : list.cases) {
    if (static_cast<size_t>(spec.problem) == problem) storages.insert(spec.config.storage);
  }
  return storages;
}

// In tier smoke in fp32 alone: there the witness is first of all the second engine of every truth, in fp64, and what it
// makes of storage types is tried again by every case that they are a yardstick of.
std::vector<PlannedCase> WitnessCases(const CaseList& list, const PlanOptions& options) {
  std::vector<PlannedCase> cases;
  for (size_t i = 0; i < list.problems.size(); ++i) {
    const Problem& problem = list.problems[i];
    for (DType storage : StoragesOf(list, i)) {
      if (options.tier == Tier::kSmoke && storage != DType::kF32) continue;
      const auto config = PlainIn(problem, storage);
      if (!config) continue;
      const std::string name(contract::StorageName(storage));
      const std::string id = std::string(problem.model.family()) + "/" + problem.name + "/torch_eager-" + name;
      cases.push_back({id,
                       Role::kWitness,
                       static_cast<int>(i),
                       CaseOf(problem, id, *config, options),
                       {{"problem", problem.name}, {"storage", name}}});
    }
  }
  return cases;
}

std::vector<PlannedCase> RelationCases(const CaseList& list, const std::vector<MetamorphicCase>& entries,
                                       const PlanOptions& options) {
  std::vector<PlannedCase> cases;
  for (const auto& [relation, spec] : entries) {
    const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
    contract::Case whole = CaseOf(problem, spec.id, spec.config, options);
    whole.steps = MetamorphicSteps(relation, problem);
    cases.push_back({spec.id, Role::kCandidate, spec.problem, std::move(whole), spec.axes, relation});
  }
  return cases;
}

std::vector<PlannedCase> AllCases(const CaseList& list, const PlanOptions& options) {
  std::vector<PlannedCase> all;
  const auto add = [&](const std::vector<CaseSpec>& cases, Role role) {
    for (const CaseSpec& spec : cases) {
      const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
      all.push_back({spec.id, role, spec.problem, CaseOf(problem, spec.id, spec.config, options), spec.axes});
    }
  };
  add(list.cases, Role::kCandidate);
  add(LayerStageCases(list, options.tier), Role::kCandidate);
  add(HintedCases(list, options.tier), Role::kCandidate);
  for (PlannedCase& entry : RelationCases(list, MetamorphicCases(list, options.tier), options)) {
    all.push_back(std::move(entry));
  }
  if (options.with_processes) add(ProcessCases(list, options.tier), Role::kProcesses);
  if (!options.with_witness) return all;
  for (PlannedCase& witness : WitnessCases(list, options)) all.push_back(std::move(witness));
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

// One problem with one case.
Plan LonePlan(const contract::Case& spec) {
  const std::string name = "case-file";
  Plan plan;
  plan.list.problems.push_back(ProblemOf(spec, name));
  plan.cases.push_back({spec.id,
                        Role::kCandidate,
                        0,
                        spec,
                        {{"problem", name}, {"storage", std::string(contract::StorageName(spec.config.storage))}}});
  return plan;
}

std::vector<CaseSpec> LayoutDefectCases(const CaseList& list, const std::string& family) {
  std::vector<CaseSpec> cases;
  for (const AxisValues& layout : DefectLayouts(family)) {
    const auto found = std::find_if(list.cases.begin(), list.cases.end(), [&](const CaseSpec& spec) {
      return spec.axes == layout && list.problems[static_cast<size_t>(spec.problem)].model.family() == family;
    });
    contract::Check(found != list.cases.end(), "a layout for defects is one of the cases");
    cases.push_back(*found);
  }
  return cases;
}

// The cases of the full tier, with the problem's number in this list.
std::vector<CaseSpec> BiasDefectCases(const CaseList& list) {
  const auto problem =
      std::find_if(list.problems.begin(), list.problems.end(), [](const Problem& p) { return p.unrelated_states > 0; });
  contract::Check(problem != list.problems.end(), "the problem of a small bias is in every list");
  std::vector<CaseSpec> cases = BiasCases(Tier::kFull).cases;
  for (CaseSpec& spec : cases) spec.problem = static_cast<int>(problem - list.problems.begin());
  return cases;
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
  spec.seed = options.lone ? options.lone->seed : contract::Mix(options.seed + 1);
  spec.steps = problem.steps;
  spec.timeout_s = options.lone ? options.lone->timeout_s : options.timeout_s;
  return spec;
}

PlanOptions LonePlanOptions(const contract::Case& spec) {
  PlanOptions options;
  options.lone = spec;
  options.seed = spec.seed;
  options.timeout_s = spec.timeout_s;
  options.with_witness = false;
  options.with_processes = false;
  return options;
}

Plan MakePlan(const PlanOptions& options) {
  if (options.lone) return LonePlan(*options.lone);
  Plan plan;
  plan.list = AllLayouts(options.tier);
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
  const std::string storage(contract::StorageName(spec.config.storage));
  const std::string optimizer(contract::Name(spec.config.optimizer));
  const auto& stages = description.zero_stages;
  const std::string family(spec.model.family());
  if (!Contains(description.families, family)) return lacks("family " + family);
  if (!Contains(description.dtypes, storage)) return lacks("dtype " + storage);
  if (!Contains(description.optimizers, optimizer)) return lacks("optimizer " + optimizer);
  const auto lists = [&](int64_t stage) { return std::find(stages.begin(), stages.end(), stage) != stages.end(); };
  const bool one_rank = spec.config.data_degree == 1;  // then all stages do what stage 0 does (docs/formats.md)
  std::vector<int64_t> asked = spec.config.layer_stages;
  asked.push_back(spec.config.zero_stage);
  for (const int64_t stage : asked) {
    if (!lists(stage) && !(one_rank && lists(0))) return lacks("zero stage " + std::to_string(stage));
  }
  if (!spec.config.layer_stages.empty() && !one_rank && !description.Has("layer_stages")) {
    return lacks("feature layer_stages");
  }
  if (spec.config.data_degree > description.max_data_degree) {
    return "the engine's max_data_degree is " + std::to_string(description.max_data_degree);
  }
  if (spec.model.has_dropout() && !description.Has("dropout")) return lacks("feature dropout");
  const bool grouped = spec.model.heads() != spec.model.kv_heads();
  if (grouped && !description.Has("grouped_heads")) return lacks("feature grouped_heads");
  if (spec.model.has_unequal_lengths() && !description.Has("unequal_lengths")) return lacks("feature unequal_lengths");
  if (spec.config.accumulation_steps > 1 && !description.Has("accumulation")) return lacks("feature accumulation");
  const contract::AdaptiveClipping::Kind clipping = spec.config.adaptive_clipping.kind;
  using Kind = contract::AdaptiveClipping::Kind;
  if (clipping == Kind::kUnit && !description.Has("unit_clipping")) return lacks("feature unit_clipping");
  if (clipping == Kind::kHistory && !description.Has("norm_history")) return lacks("feature norm_history");
  if (contract::HasDynamicLossScale(spec.config) && !description.Has("loss_scaler"))
    return lacks("feature loss_scaler");
  return std::nullopt;
}

std::string FailureFolder(const PlannedCase& entry, const contract::Case& run) {
  std::string name = (entry.role == Role::kCleanTwin ? "clean-twin/" : "") + run.id;
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::vector<PlannedCase> DefectCases(const std::string& group, const PlanOptions& given) {
  // A defect that makes ranks wait for each other is found by the time-out, so it is short: a case takes a fraction of
  // a second.
  constexpr double kMaxTimeoutSeconds = 20;
  PlanOptions options = given;
  options.timeout_s = std::min(options.timeout_s, kMaxTimeoutSeconds);
  const CaseList& list = AllLayouts(options.tier);
  std::vector<PlannedCase> chosen;
  const std::vector<CaseSpec> layouts = group == "gpt2/bias" ? BiasDefectCases(list) : LayoutDefectCases(list, group);
  for (const CaseSpec& spec : layouts) {
    const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
    chosen.push_back(
        {spec.id, Role::kCandidate, spec.problem, CaseOf(problem, spec.id, spec.config, options), spec.axes});
  }
  if (group != "gpt2" && group != "llama") return chosen;
  for (PlannedCase& entry : RelationCases(list, DefectRelationCases(list, layouts), options)) {
    chosen.push_back(std::move(entry));
  }
  return chosen;
}

}  // namespace plumbline::conformance
