// SPDX-License-Identifier: Apache-2.0
// The list of metamorphic cases: every relation that can hold for a problem is tried, and only on layouts in which its
// variant differs from the whole.
#include "conformance/cases/metamorphic_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/layouts.h"
#include "conformance/cases/llama_cases.h"

namespace plumbline::conformance {
namespace {

CaseList Lists(Tier tier) {
  CaseList list = ExactCases(tier);
  Append(list, Gpt2Cases(tier));
  Append(list, LlamaCases(tier));
  return list;
}

class EveryTier : public testing::TestWithParam<Tier> {
 protected:
  CaseList list_ = Lists(GetParam());
  std::vector<MetamorphicCase> cases_ = MetamorphicCases(list_, GetParam());

  const Problem& ProblemOf(const MetamorphicCase& entry) const {
    return list_.problems[static_cast<size_t>(entry.spec.problem)];
  }
};

TEST_P(EveryTier, HasEveryRelationOfEveryProblemForWhichItCanHold) {
  std::set<std::pair<int, MetamorphicRelation>> seen;
  for (const MetamorphicCase& entry : cases_) seen.emplace(entry.spec.problem, entry.relation);
  contract::RunConfig even;
  even.micro_batch_size = 2;
  for (size_t problem = 0; problem < list_.problems.size(); ++problem) {
    for (MetamorphicRelation relation : kMetamorphicRelations) {
      EXPECT_EQ(seen.contains({static_cast<int>(problem), relation}),
                HoldsFor(relation, list_.problems[problem].model, even) && !list_.problems[problem].is_about_updates)
          << list_.problems[problem].name << " " << Name(relation);
    }
  }
}

TEST_P(EveryTier, HasSeveralRanksAndMicroBatchesAndAnIdOfItsOwn) {
  std::set<std::string> ids;
  for (const CaseSpec& spec : list_.cases) ids.insert(spec.id);
  for (const MetamorphicCase& entry : cases_) {
    const contract::RunConfig& config = entry.spec.config;
    EXPECT_TRUE(ids.insert(entry.spec.id).second) << entry.spec.id;
    EXPECT_GT(config.data_degree, 1) << entry.spec.id;
    EXPECT_GT(config.accumulation_steps, 1) << entry.spec.id;
    EXPECT_EQ(config.train_batch_size, config.data_degree * config.accumulation_steps * config.micro_batch_size);
    EXPECT_TRUE(HoldsFor(entry.relation, ProblemOf(entry).model, config)) << entry.spec.id;
    EXPECT_NE(entry.spec.id.find("/metamorphic-" + std::string(Name(entry.relation)) + "-data"), std::string::npos);
  }
}

TEST_P(EveryTier, StatesItsAxesAsTheyAreAndStoresRealFamiliesInFp32) {
  for (const MetamorphicCase& entry : cases_) {
    const std::map<std::string, std::string> axes(entry.spec.axes.begin(), entry.spec.axes.end());
    EXPECT_EQ(axes.at("problem"), ProblemOf(entry).name);
    EXPECT_EQ(axes.at("relation"), Name(entry.relation));
    EXPECT_EQ(axes.at("data"), std::to_string(entry.spec.config.data_degree));
    EXPECT_EQ(axes.at("storage") == "fp32", entry.spec.config.storage == contract::DType::kF32) << entry.spec.id;
    EXPECT_TRUE(entry.spec.id.ends_with("-" + axes.at("storage"))) << entry.spec.id;
    if (!ProblemOf(entry).model.is_exact()) {
      EXPECT_EQ(entry.spec.config.storage, contract::DType::kF32) << entry.spec.id;
    }
  }
}

TEST_P(EveryTier, HasEveryStageInBothFamilies) {
  std::map<bool, std::set<int64_t>> stages;
  for (const MetamorphicCase& entry : cases_) {
    stages[ProblemOf(entry).model.is_exact()].insert(entry.spec.config.zero_stage);
  }
  for (bool is_exact : {false, true}) EXPECT_EQ(stages[is_exact], (std::set<int64_t>{0, 1, 2, 3})) << is_exact;
}

INSTANTIATE_TEST_SUITE_P(MetamorphicCases, EveryTier, testing::Values(Tier::kSmoke, Tier::kFull),
                         [](const auto& tier) { return std::string(SizesOf(tier.param).name); });

TEST(MetamorphicCases, AreMoreInHigherTiersAndNoneWithoutSeveralRanksAndMicroBatches) {
  EXPECT_GT(MetamorphicCases(Lists(Tier::kFull), Tier::kFull).size(),
            MetamorphicCases(Lists(Tier::kSmoke), Tier::kSmoke).size());
  CaseList list = ExactCases();
  std::erase_if(list.cases, [](const CaseSpec& spec) { return spec.config.data_degree > 1; });
  EXPECT_TRUE(MetamorphicCases(list, Tier::kSmoke).empty());
  list = ExactCases();
  std::erase_if(list.cases, [](const CaseSpec& spec) { return spec.config.accumulation_steps > 1; });
  EXPECT_TRUE(MetamorphicCases(list, Tier::kSmoke).empty());
  EXPECT_TRUE(MetamorphicCases(CaseList{}, Tier::kNightly).empty());
}

TEST(HoldsFor, LeavesOutSamplesThatMoveUnderMasksFoldsThatDoNotScaleAndOddMicroBatches) {
  contract::Gpt2Spec real;
  contract::ExactSpec exact;
  contract::RunConfig config;
  for (int64_t micro_batch : {1, 2, 3, 6}) {
    config.micro_batch_size = micro_batch;
    for (bool dropout : {false, true}) {
      real.dropout = dropout ? 0.1 : 0;
      exact.dropout = dropout;
      for (const contract::ModelSpec& model : {contract::ModelSpec(real), contract::ModelSpec(exact)}) {
        EXPECT_EQ(HoldsFor(MetamorphicRelation::kPermuted, model, config), !dropout);
        EXPECT_EQ(HoldsFor(MetamorphicRelation::kRelabelled, model, config), !dropout);
        EXPECT_TRUE(HoldsFor(MetamorphicRelation::kSplit, model, config));
        EXPECT_EQ(HoldsFor(MetamorphicRelation::kScaled, model, config), !model.is_exact());
        EXPECT_EQ(HoldsFor(MetamorphicRelation::kAccumulated, model, config), micro_batch % 2 == 0);
        EXPECT_EQ(HoldsFor(MetamorphicRelation::kShiftedScores, model, config), !model.is_exact());
        EXPECT_FALSE(HoldsFor(MetamorphicRelation::kShiftedLogits, model, config)) << "the head is tied";
      }
    }
  }
}

TEST(HoldsFor, TakesTheShiftOfLogitsForAnUntiedHeadOnly) {
  for (bool tied : {true, false}) {
    contract::Gpt2Spec model;
    model.tied_head = tied;
    EXPECT_EQ(HoldsFor(MetamorphicRelation::kShiftedLogits, model, {}), !tied);
  }
}

TEST(HoldsFor, TakesPaddingAndScoresWhereThereAreSome) {
  contract::LlamaSpec model;
  EXPECT_FALSE(HoldsFor(MetamorphicRelation::kPadded, model, {}));
  model.unequal_lengths = true;
  EXPECT_TRUE(HoldsFor(MetamorphicRelation::kPadded, model, {}));
  EXPECT_TRUE(HoldsFor(MetamorphicRelation::kShiftedLogits, model, {}));
  EXPECT_FALSE(HoldsFor(MetamorphicRelation::kShiftedScores, model, {})) << "keys have no bias";
  EXPECT_FALSE(HoldsFor(MetamorphicRelation::kPadded, contract::Gpt2Spec(), {}));
  EXPECT_FALSE(HoldsFor(MetamorphicRelation::kPadded, contract::ExactSpec(), {}));
}

TEST(DefectRelationCases, AreOnTheFirstLayoutForWhichEachRelationHoldsInFp32) {
  const CaseList list = Lists(Tier::kSmoke);
  const std::vector<MetamorphicCase> cases = DefectRelationCases(list, list.cases);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].relation, MetamorphicRelation::kShiftedLogits);
  EXPECT_EQ(cases[1].relation, MetamorphicRelation::kShiftedScores);
  EXPECT_EQ(cases[2].relation, MetamorphicRelation::kPadded);
  EXPECT_FALSE(list.problems[static_cast<size_t>(cases[0].spec.problem)].model.has_tied_head());
  EXPECT_TRUE(list.problems[static_cast<size_t>(cases[2].spec.problem)].model.has_unequal_lengths());
  for (const MetamorphicCase& entry : cases) {
    EXPECT_EQ(entry.spec.config.storage, contract::DType::kF32);
    EXPECT_GT(entry.spec.config.data_degree, 1);
    EXPECT_GT(entry.spec.config.accumulation_steps, 1);
  }
  EXPECT_TRUE(DefectRelationCases(ExactCases(), ExactCases().cases).empty());
}

TEST(MetamorphicSteps, AreSingleWhereTheRunsPartAndAtMostTheProblems) {
  Problem exact{"exact", contract::ExactSpec{}, {}, 7};
  Problem real{"real", contract::Gpt2Spec{}, {}, 7};
  for (MetamorphicRelation relation : kMetamorphicRelations) {
    EXPECT_EQ(MetamorphicSteps(relation, real), 1);
    EXPECT_EQ(MetamorphicSteps(relation, exact), relation == MetamorphicRelation::kSplit ? 1 : 7);
  }
}

}  // namespace
}  // namespace plumbline::conformance
