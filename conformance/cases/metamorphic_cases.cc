// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/metamorphic_cases.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "conformance/cases/layouts.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

// Every step is compared, so that more of them only repeat what one shows; a moment or a counter needs a few.
constexpr int64_t kExactSteps = 20;

// For each problem and relation.
size_t MostLayouts(Tier tier) {
  switch (tier) {
    case Tier::kSmoke:
      return 1;
    case Tier::kFull:
      return 3;
    case Tier::kNightly:
      return 8;
  }
  return 1;
}

std::string& AxisOf(CaseSpec& spec, const std::string& name) {
  return std::find_if(spec.axes.begin(), spec.axes.end(), [&](const auto& axis) { return axis.first == name; })->second;
}

const Problem& ProblemOf(const CaseList& list, const CaseSpec& spec) {
  return list.problems[static_cast<size_t>(spec.problem)];
}

// The layout's name ends with the storage.
CaseSpec InFp32(CaseSpec spec, const Problem& problem) {
  constexpr std::string_view kName = "fp32";
  std::string& storage = AxisOf(spec, "storage");
  spec.id.replace(spec.id.size() - storage.size(), storage.size(), kName);
  storage = kName;
  StoreIn(DType::kF32, problem, spec.config);
  return spec;
}

MetamorphicCase MakeCase(MetamorphicRelation relation, CaseSpec spec) {
  const std::string name(Name(relation));
  spec.id.insert(spec.id.rfind('/') + 1, "metamorphic-" + name + "-");
  spec.axes.emplace_back("relation", name);
  return {relation, std::move(spec)};
}

bool HasSeveralRanksAndMicroBatches(const CaseSpec& spec) {
  return spec.config.data_degree > 1 && spec.config.accumulation_steps > 1;
}

// Of one problem, those with several ranks and micro-batches, each once.
std::vector<CaseSpec> LayoutsOf(const CaseList& list, int problem) {
  const bool is_exact = list.problems[static_cast<size_t>(problem)].model.is_exact();
  std::vector<CaseSpec> layouts;
  std::set<std::string> ids;
  for (const CaseSpec& entry : list.cases) {
    if (entry.problem != problem || !HasSeveralRanksAndMicroBatches(entry)) continue;
    CaseSpec spec = is_exact ? entry : InFp32(entry, ProblemOf(list, entry));
    if (ids.insert(spec.id).second) layouts.push_back(std::move(spec));
  }
  return layouts;
}

using Relations = std::span<const MetamorphicRelation>;
constexpr Relations kAll(kMetamorphicRelations);
constexpr Relations kOfSums = kAll.first(5), kOfSoftmax = kAll.subspan(5, 2), kOfPadding = kAll.subspan(7);

void AddCases(const CaseList& list, Tier tier, Relations relations, std::vector<MetamorphicCase>& cases) {
  constexpr int64_t kNumStages = 4;
  int64_t turn = 0;
  for (size_t problem = 0; problem < list.problems.size(); ++problem) {
    if (list.problems[problem].unrelated_states > 0) continue;  // for the check of a small bias alone
    if (list.problems[problem].is_about_updates) continue;
    const std::vector<CaseSpec> layouts = LayoutsOf(list, static_cast<int>(problem));
    for (MetamorphicRelation relation : relations) {
      std::vector<CaseSpec> open;
      for (const CaseSpec& spec : layouts) {
        if (HoldsFor(relation, list.problems[problem].model, spec.config)) open.push_back(spec);
      }
      for (size_t i = 0; i < MostLayouts(tier) && !open.empty(); ++i, ++turn) {
        // The stage whose turn it is, or the nearest above that some layout has.
        const auto next = std::min_element(open.begin(), open.end(), [&](const CaseSpec& a, const CaseSpec& b) {
          const auto distance = [&](const CaseSpec& spec) {
            return (spec.config.zero_stage - turn % kNumStages + kNumStages) % kNumStages;
          };
          return distance(a) < distance(b);
        });
        cases.push_back(MakeCase(relation, *next));
        open.erase(next);
      }
    }
  }
}

}  // namespace

std::string_view Name(MetamorphicRelation relation) {
  switch (relation) {
    case MetamorphicRelation::kPermuted:
      return "permuted";
    case MetamorphicRelation::kRelabelled:
      return "relabelled";
    case MetamorphicRelation::kSplit:
      return "split";
    case MetamorphicRelation::kScaled:
      return "scaled";
    case MetamorphicRelation::kAccumulated:
      return "accumulated";
    case MetamorphicRelation::kShiftedLogits:
      return "shifted_logits";
    case MetamorphicRelation::kShiftedScores:
      return "shifted_scores";
    case MetamorphicRelation::kPadded:
      return "padded";
  }
  return "";
}

bool HoldsFor(MetamorphicRelation relation, const contract::ModelSpec& model, const contract::RunConfig& config) {
  switch (relation) {
    case MetamorphicRelation::kPermuted:
    case MetamorphicRelation::kRelabelled:
      return !model.has_dropout();
    case MetamorphicRelation::kSplit:
      return true;
    case MetamorphicRelation::kScaled:
      return !model.is_exact();
    case MetamorphicRelation::kShiftedScores:
      return model.kind() == contract::Family::kGpt2;
    case MetamorphicRelation::kAccumulated:
      return config.micro_batch_size % 2 == 0;
    case MetamorphicRelation::kShiftedLogits:
      return !model.is_exact() && !model.has_tied_head();
    case MetamorphicRelation::kPadded:
      return model.has_unequal_lengths();
  }
  return false;
}

std::vector<MetamorphicCase> MetamorphicCases(const CaseList& list, Tier tier) {
  std::vector<MetamorphicCase> cases;
  // Each kind has stages in turns of its own, so that a relation of one does not move those of the other.
  AddCases(list, tier, kOfSums, cases);
  AddCases(list, tier, kOfSoftmax, cases);
  AddCases(list, tier, kOfPadding, cases);
  return cases;
}

std::vector<MetamorphicCase> DefectRelationCases(const CaseList& list, const std::vector<CaseSpec>& layouts) {
  std::vector<MetamorphicCase> cases;
  for (MetamorphicRelation relation : kAll.subspan(kOfSums.size())) {
    const auto found = std::find_if(layouts.begin(), layouts.end(), [&](const CaseSpec& spec) {
      return HasSeveralRanksAndMicroBatches(spec) &&
             HoldsFor(relation, list.problems[static_cast<size_t>(spec.problem)].model, spec.config);
    });
    if (found != layouts.end()) cases.push_back(MakeCase(relation, InFp32(*found, ProblemOf(list, *found))));
  }
  return cases;
}

int64_t MetamorphicSteps(MetamorphicRelation relation, const Problem& problem) {
  // Real runs differ by rounding and drift apart; the halves of a split batch train two other models.
  if (!problem.model.is_exact() || relation == MetamorphicRelation::kSplit) return 1;
  return std::min(problem.steps, kExactSteps);
}

}  // namespace plumbline::conformance
