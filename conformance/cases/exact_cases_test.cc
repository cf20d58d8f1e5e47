// SPDX-License-Identifier: Apache-2.0
// The list must keep the traps that its cases exist for: this test fails when an edit of the axes loses one.
#include "conformance/cases/exact_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "conformance/contract/batch_source.h"

namespace plumbline::conformance {
namespace {

bool Any(const CaseList& list, const std::function<bool(const CaseSpec&, const Problem&)>& has) {
  return std::any_of(list.cases.begin(), list.cases.end(),
                     [&](const CaseSpec& spec) { return has(spec, list.problems[static_cast<size_t>(spec.problem)]); });
}

TEST(ExactCases, AreFiftyAtLeastAndSixtyFromFullOnWithUniqueIds) {
  for (Tier tier : {Tier::kSmoke, Tier::kFull}) {
    const CaseList list = ExactCases(tier);
    std::set<std::string> ids;
    for (const CaseSpec& spec : list.cases) ids.insert(spec.id);
    EXPECT_EQ(ids.size(), list.cases.size());
    EXPECT_GE(ids.size(), tier == Tier::kSmoke ? 50u : 60u);
  }
}

TEST(ExactCases, HaveConfigsThatParseBackAndDivide) {
  for (const CaseSpec& spec : ExactCases().cases) {
    const contract::RunConfig parsed = contract::ParseRunConfig(contract::ToJson(spec.config), spec.id);
    EXPECT_EQ(parsed, spec.config) << spec.id;
    EXPECT_EQ(spec.config.train_batch_size,
              spec.config.micro_batch_size * spec.config.accumulation_steps * spec.config.data_degree);
  }
}

TEST(ExactCases, TrainLongEnoughForOneUnitToSpread) {
  for (const Problem& problem : ExactCases().problems) EXPECT_GE(problem.steps, 50) << problem.name;
}

TEST(ExactCases, HaveEveryValueOfEveryAxisThatTheIssueOfUsersNames) {
  const CaseList list = ExactCases();
  for (int64_t degree : {1, 2, 3, 4, 8}) {
    for (int64_t stage : {0, 1, 2, 3}) {
      EXPECT_TRUE(Any(list,
                      [&](const CaseSpec& spec, const Problem&) {
                        return spec.config.data_degree == degree && spec.config.zero_stage == stage;
                      }))
          << degree << " " << stage;
    }
  }
  for (int64_t accumulation : {1, 3, 4}) {
    for (auto storage : {contract::DType::kF32, contract::DType::kBF16, contract::DType::kF16}) {
      EXPECT_TRUE(Any(list, [&](const CaseSpec& spec, const Problem&) {
        return spec.config.accumulation_steps == accumulation && spec.config.storage == storage;
      }));
    }
  }
  for (int64_t offset : {-1, 0, 1}) {
    EXPECT_TRUE(Any(list, [&](const CaseSpec& spec, const Problem& problem) {
      const auto parameters = contract::Parameters(problem.model);
      return std::any_of(parameters.begin(), parameters.end(), [&](const contract::ParameterSpec& parameter) {
        return spec.config.reduce_bucket_elems == parameter.numel() + offset;
      });
    })) << offset;
  }
  for (int64_t vocab : {5, 19}) {
    EXPECT_TRUE(Any(list, [&](const CaseSpec&, const Problem& problem) { return problem.model.vocab() == vocab; }));
  }
}

TEST(ExactCases, HaveTheTraps) {
  const CaseList list = ExactCases();
  const auto has = [&](const std::function<bool(const CaseSpec&, const Problem&)>& predicate) {
    return Any(list, predicate);
  };
  EXPECT_TRUE(has([](const CaseSpec& spec, const Problem& problem) {
    for (const auto& parameter : contract::Parameters(problem.model)) {
      if (parameter.numel() % spec.config.data_degree != 0 && spec.config.zero_stage > 0) return true;
    }
    return false;
  })) << "numel not divisible by the world, sharded";
  EXPECT_TRUE(has([](const CaseSpec&, const Problem& problem) { return problem.model.exact().dropout; }));
  EXPECT_TRUE(has([](const CaseSpec&, const Problem& problem) {
    return problem.model.exact().heads != problem.model.exact().kv_heads && problem.model.exact().kv_heads > 1;
  })) << "grouped heads";
  EXPECT_TRUE(has([](const CaseSpec& spec, const Problem& problem) {
    return problem.plain.optimizer == contract::OptimizerKind::kModularSgd && spec.config.accumulation_steps >= 3;
  })) << "an optimizer without moments";
}

// The factor 2 of dropout keeps the lowest bit of every U under modular SGD: half of all single units would be
// forgotten.
TEST(ExactCases, NeverCombineModularSgdWithDropout) {
  for (const Problem& problem : ExactCases().problems) {
    EXPECT_FALSE(problem.model.exact().dropout && problem.plain.optimizer == contract::OptimizerKind::kModularSgd)
        << problem.name;
  }
}

TEST(ExactCases, CoverAllValidTuplesOfTheirTierAndGiveAReasonForEachExcludedOne) {
  for (Tier tier : {Tier::kSmoke, Tier::kFull, Tier::kNightly}) {
    const CaseList list = ExactCases(tier);
    ASSERT_EQ(list.coverage.size(), 1u);
    const FamilyCoverage& coverage = list.coverage.front();
    EXPECT_EQ(coverage.cases, static_cast<int64_t>(list.cases.size()));
    for (const Coverage& tuples : coverage.tuples) {
      EXPECT_GT(tuples.valid, 0);
      if (tuples.strength > SizesOf(tier).exact_strength) continue;
      EXPECT_EQ(tuples.covered, tuples.valid) << tuples.strength;
    }
    EXPECT_EQ(coverage.excluded.front(),
              (Exclusion{"problem=grouped-v5 data=8", "data times accumulation does not divide the batch"}));
    for (const auto& [tuple, reason] : coverage.excluded) {
      if (tuple == "problem=middle-v19 storage=bf16" || tuple == "problem=wide-v5 storage=bf16") {
        EXPECT_EQ(reason, "the problem's bounds leave the integers that bf16 holds");
        continue;
      }
      if (tuple == "problem=wide-v5 storage=fp16") {
        EXPECT_TRUE(reason.starts_with("the problem's bounds leave the integers that fp16 holds")) << reason;
        continue;
      }
      EXPECT_EQ(reason, "data times accumulation does not divide the batch") << tuple;
      EXPECT_TRUE(tuple.find("data=") != std::string::npos || tuple.find("accumulation=") != std::string::npos)
          << tuple;
    }
  }
}

TEST(ExactCases, TrainTwoHundredStepsInTheFullTier) {
  for (const Problem& problem : ExactCases(Tier::kFull).problems) EXPECT_EQ(problem.steps, 200) << problem.name;
}

TEST(ExactCases, HaveOverlapOnAndOff) {
  for (bool overlap : {true, false}) {
    EXPECT_TRUE(Any(ExactCases(), [&](const CaseSpec& spec, const Problem&) {
      return spec.config.overlap_comm == overlap && spec.config.data_degree > 1;
    }));
  }
}

TEST(ExactCases, HaveAPlainLayoutOfOneRankAndOneMicroBatch) {
  for (const Problem& problem : ExactCases().problems) {
    EXPECT_EQ(problem.plain.world_size(), 1);
    EXPECT_EQ(problem.plain.accumulation_steps, 1);
    EXPECT_EQ(problem.plain.micro_batch_size, problem.plain.train_batch_size);
    EXPECT_EQ(problem.plain.storage, contract::DType::kF32);
  }
}

}  // namespace
}  // namespace plumbline::conformance
