// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/llama_cases.h"
#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

PlanOptions Select(Selection selection) {
  PlanOptions options;
  options.selection = std::move(selection);
  return options;
}

std::set<std::string> Ids(const Plan& plan) {
  std::set<std::string> ids;
  for (const PlannedCase& entry : plan.cases) EXPECT_TRUE(ids.insert(entry.id).second) << entry.id;
  return ids;
}

TEST(MakePlan, ShardsAreDisjointAndTogetherTheWhole) {
  const std::set<std::string> whole = Ids(MakePlan(PlanOptions{}));
  for (int64_t count : {1, 2, 3, 7, 200}) {
    std::set<std::string> united;
    size_t sum = 0;
    for (int64_t index = 1; index <= count; ++index) {
      Selection selection;
      selection.shard_index = index;
      selection.shard_count = count;
      const std::set<std::string> part = Ids(MakePlan(Select(selection)));
      united.insert(part.begin(), part.end());
      sum += part.size();
    }
    EXPECT_EQ(united, whole);
    EXPECT_EQ(sum, whole.size());
  }
}

TEST(MakePlan, SelectsOneCaseById) {
  const std::string id = MakePlan(PlanOptions{}).cases[10].id;
  Selection selection;
  selection.case_id = id;
  EXPECT_EQ(Ids(MakePlan(Select(selection))), std::set<std::string>{id});
}

TEST(MakePlan, NamesTheNearestIdForAnUnknownOne) {
  Selection selection;
  selection.case_id = "exact/dense-v19/torch_eager-fp23";
  try {
    MakePlan(Select(selection));
    FAIL() << "accepted";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("torch_eager-fp32"), std::string::npos) << error.what();
  }
}

TEST(MakePlan, FiltersByShellPattern) {
  Selection selection;
  selection.filter = "*/data3-*";
  const Plan plan = MakePlan(Select(selection));
  EXPECT_FALSE(plan.cases.empty());
  for (const PlannedCase& entry : plan.cases) EXPECT_EQ(entry.spec.config.data_degree, 3);
  selection.filter = "nothing";
  EXPECT_TRUE(MakePlan(Select(selection)).cases.empty());
}

TEST(MakePlan, LooksForASmallBiasInBf16WithEngineAndWitnessButNotInTheSmokeTier) {
  for (const Tier tier : {Tier::kSmoke, Tier::kFull, Tier::kNightly}) {
    PlanOptions options;
    options.tier = tier;
    std::set<Role> roles;
    const Plan plan = MakePlan(options);
    for (const PlannedCase& entry : plan.cases) {
      if (plan.list.problems[static_cast<size_t>(entry.problem)].unrelated_states == 0) continue;
      EXPECT_TRUE(entry.id.starts_with("gpt2/bias/")) << entry.id;
      EXPECT_EQ(entry.spec.config.storage, contract::DType::kBF16) << entry.id;
      roles.insert(entry.role);
    }
    EXPECT_EQ(roles, tier == Tier::kSmoke ? std::set<Role>{} : (std::set<Role>{Role::kCandidate, Role::kWitness}));
  }
}

TEST(MakePlan, HasCasesOfProcessesFromFullOnForOurEngineAlone) {
  const auto count = [](const PlanOptions& options) {
    int64_t num_cases = 0;
    for (const PlannedCase& entry : MakePlan(options).cases) {
      const bool is_named = entry.id.find("/processes-") != std::string::npos;
      EXPECT_EQ(is_named, entry.role == Role::kProcesses) << entry.id;
      num_cases += is_named;
    }
    return num_cases;
  };
  PlanOptions options;
  EXPECT_EQ(count(options), 0);
  options.tier = Tier::kFull;
  EXPECT_GT(count(options), 0);
  options.with_processes = false;
  EXPECT_EQ(count(options), 0);
}

TEST(MakePlan, LeavesTheWitnessOutForAForeignEngine) {
  PlanOptions options;
  options.with_witness = false;
  for (const PlannedCase& entry : MakePlan(options).cases) EXPECT_EQ(entry.role, Role::kCandidate);
}

TEST(MakePlan, RunsEveryCaseForAllStepsOfItsProblem) {
  const Plan plan = MakePlan(PlanOptions{});
  for (const PlannedCase& entry : plan.cases) {
    if (entry.relation) continue;  // metamorphic_cases.h says how many it has
    EXPECT_EQ(entry.spec.steps, plan.list.problems[static_cast<size_t>(entry.problem)].steps) << entry.id;
    EXPECT_GT(entry.spec.seed, uint64_t{1} << 32) << "a seed of 64 bits";
  }
}

CaseList CasesOf(const std::string& family) {
  if (family == "exact") return ExactCases();
  return family == "gpt2" ? Gpt2Cases() : LlamaCases();
}

TEST(DefectCases, HaveEveryProblemStageStorageSeveralRanksAndAccumulation) {
  for (const std::string family : {"exact", "gpt2", "llama"}) {
    std::set<int> problems;
    std::set<int64_t> stages;
    std::set<int64_t> degrees;
    std::set<std::pair<bool, contract::DType>> updates;  // with and without moments, in the storage types
    bool accumulates = false;
    for (const PlannedCase& entry : DefectCases(family, PlanOptions{})) {
      EXPECT_EQ(entry.spec.model.family(), family);
      problems.insert(entry.problem);
      stages.insert(entry.spec.config.zero_stage);
      degrees.insert(entry.spec.config.data_degree);
      updates.emplace(contract::HasMoment(entry.spec.config), entry.spec.config.storage);
      accumulates |= entry.spec.config.accumulation_steps >= 3;
    }
    EXPECT_EQ(problems.size(), CasesOf(family).problems.size()) << family;
    EXPECT_GE(stages.size(), 3u) << family;
    EXPECT_GE(degrees.size(), 3u) << family;
    EXPECT_EQ(updates.size(), 5u) << family;
    EXPECT_TRUE(accumulates) << family;
  }
}

// Defects would otherwise be tried on other layouts where more combinations are covered, and survive there.
TEST(DefectCases, AreTheSameLayoutsInEveryTier) {
  for (const std::string family : {"exact", "gpt2", "gpt2/bias", "llama"}) {
    PlanOptions full;
    full.tier = Tier::kFull;
    const std::vector<PlannedCase> smoke_cases = DefectCases(family, PlanOptions{});
    const std::vector<PlannedCase> full_cases = DefectCases(family, full);
    ASSERT_EQ(smoke_cases.size(), full_cases.size());
    for (size_t i = 0; i < smoke_cases.size(); ++i) {
      EXPECT_EQ(smoke_cases[i].id, full_cases[i].id);
      EXPECT_EQ(smoke_cases[i].spec.config, full_cases[i].spec.config);
    }
  }
}

TEST(DefectCases, OfRealFamiliesHaveTheRelationsOfSoftmaxesAndPaddingOfOneStep) {
  using Relations = std::set<MetamorphicRelation>;
  for (const auto& [family, expected] :
       {std::pair("gpt2", Relations{MetamorphicRelation::kShiftedLogits, MetamorphicRelation::kShiftedScores}),
        {"llama", Relations{MetamorphicRelation::kShiftedLogits, MetamorphicRelation::kPadded}}}) {
    Relations relations;
    for (const PlannedCase& entry : DefectCases(family, PlanOptions{})) {
      if (!entry.relation) continue;
      relations.insert(*entry.relation);
      EXPECT_EQ(entry.spec.steps, 1) << entry.id;
      EXPECT_EQ(entry.spec.timeout_s, 20) << entry.id;
    }
    EXPECT_EQ(relations, expected) << family;
  }
  for (const std::string group : {"exact", "gpt2/bias"}) {
    for (const PlannedCase& entry : DefectCases(group, PlanOptions{})) EXPECT_FALSE(entry.relation) << entry.id;
  }
}

// A bias shows in no case of the family's layouts, and those are too many to give each the time of this one.
TEST(DefectCases, OfASmallBiasAreThoseOfItsProblemThoughSmokeHasNoneOfThem) {
  const Plan smoke = MakePlan(PlanOptions{});
  const std::vector<PlannedCase> cases = DefectCases("gpt2/bias", PlanOptions{});
  ASSERT_FALSE(cases.empty());
  for (const PlannedCase& entry : cases) {
    EXPECT_GT(smoke.list.problems[static_cast<size_t>(entry.problem)].unrelated_states, 0);
    EXPECT_EQ(entry.spec.config.storage, contract::DType::kBF16);
  }
  for (const PlannedCase& entry : smoke.cases) EXPECT_NE(entry.problem, cases.front().problem) << entry.id;
}

contract::EngineDescription AbleEngine() {
  contract::EngineDescription description;
  description.families = {"exact", "gpt2", "llama"};
  description.dtypes = {"fp32", "bf16", "fp16"};
  description.optimizers = {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"};
  description.zero_stages = {0, 1, 2, 3};
  description.max_data_degree = 8;
  description.features = {"dropout",       "grouped_heads", "accumulation",
                          "unit_clipping", "norm_history",  "unequal_lengths", "loss_scaler"};
  return description;
}

TEST(Declined, IsNothingForAnEngineThatListsAll) {
  for (const PlannedCase& entry : MakePlan(PlanOptions{}).cases) {
    EXPECT_FALSE(Declined(AbleEngine(), entry.spec)) << entry.id;
  }
}

TEST(Declined, NamesEachThingThatTheDescriptionLacks) {
  const auto any = [](const contract::EngineDescription& description, const std::string& part) {
    for (const PlannedCase& entry : MakePlan(PlanOptions{}).cases) {
      const auto reason = Declined(description, entry.spec);
      if (reason && reason->find(part) != std::string::npos) return true;
    }
    return false;
  };
  contract::EngineDescription description = AbleEngine();
  description.families.clear();
  EXPECT_TRUE(any(description, "family exact"));
  description = AbleEngine();
  description.dtypes = {"fp32"};
  EXPECT_TRUE(any(description, "dtype bf16"));
  description = AbleEngine();
  description.optimizers = {"ModularMomentum"};
  EXPECT_TRUE(any(description, "ModularSGD"));
  description = AbleEngine();
  description.zero_stages = {0, 1};
  EXPECT_TRUE(any(description, "zero stage 2") && any(description, "zero stage 3"));
  description = AbleEngine();
  description.max_data_degree = 4;
  EXPECT_TRUE(any(description, "max_data_degree is 4"));
  for (const char* feature :
       {"dropout", "grouped_heads", "accumulation", "unit_clipping", "norm_history", "unequal_lengths", "loss_scaler"}) {
    description = AbleEngine();
    std::erase(description.features, feature);
    EXPECT_TRUE(any(description, std::string("feature ") + feature));
  }
}

TEST(Declined, AsksForEachStageOfALayerWhereThereAreSeveralRanks) {
  contract::Case spec = MakePlan(PlanOptions{}).cases.front().spec;
  spec.config.data_degree = 2;
  spec.config.zero_stage = 0;
  spec.config.layer_stages = {1, 2};
  contract::EngineDescription description = AbleEngine();
  EXPECT_EQ(Declined(description, spec), "the engine's description does not list feature layer_stages");
  description.features.push_back("layer_stages");
  EXPECT_FALSE(Declined(description, spec));
  description.zero_stages = {0, 1};
  EXPECT_EQ(Declined(description, spec), "the engine's description does not list zero stage 2");
  spec.config.data_degree = 1;
  description.features.pop_back();
  EXPECT_FALSE(Declined(description, spec));
}

TEST(FailureFolder, IsAnotherOneForEachRunOfCandidateAndCleanTwin) {
  std::set<std::string> names;
  size_t num_runs = 0;
  for (const Role role : {Role::kCandidate, Role::kCleanTwin}) {
    for (const char* family : {"exact", "gpt2", "llama"}) {
      for (PlannedCase entry : DefectCases(family, PlanOptions{})) {
        entry.role = role;
        if (role == Role::kCleanTwin) entry.id = "clean-twin/" + entry.id;
        for (const char* part : {"", "/step4", "/again"}) {
          contract::Case run = entry.spec;
          run.id += part;
          const std::string name = FailureFolder(entry, run);
          EXPECT_EQ(name.find('/'), std::string::npos) << name;
          EXPECT_TRUE(names.insert(name).second) << name;
          ++num_runs;
        }
      }
    }
  }
  EXPECT_GE(num_runs, 50u);
}

TEST(Declined, TakesEveryStageOfOneRankForStageZero) {
  contract::EngineDescription description = AbleEngine();
  description.zero_stages = {0};
  int64_t of_one_rank = 0;
  for (const PlannedCase& entry : MakePlan(PlanOptions{}).cases) {
    if (entry.spec.config.zero_stage == 0) continue;
    const bool one_rank = entry.spec.config.data_degree == 1;
    of_one_rank += one_rank;
    EXPECT_EQ(Declined(description, entry.spec).has_value(), !one_rank) << entry.id;
  }
  EXPECT_GT(of_one_rank, 0);
}

}  // namespace
}  // namespace plumbline::conformance
