// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/odd_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/contract/run_config.h"

namespace plumbline::conformance {
namespace {

TEST(OddCases, HaveConfigsThatParseBackAndDivide) {
  const CaseList list = OddCases(Tier::kFull);
  EXPECT_FALSE(list.cases.empty());
  for (const CaseSpec& spec : list.cases) {
    EXPECT_EQ(contract::ParseRunConfig(contract::ToJson(spec.config), spec.id), spec.config) << spec.id;
    EXPECT_EQ(spec.config.train_batch_size,
              spec.config.micro_batch_size * spec.config.accumulation_steps * spec.config.data_degree);
  }
}

template <typename Has>
bool Any(Has has) {
  const CaseList list = OddCases(Tier::kNightly);
  return std::any_of(list.cases.begin(), list.cases.end(), [&](const CaseSpec& spec) {
    return has(spec.config, list.problems[static_cast<size_t>(spec.problem)]);
  });
}

// What each of the mistakes needed that no other case saw.
TEST(OddCases, HaveWhatTheCoveringArraysHaveNot) {
  using Config = contract::RunConfig;
  EXPECT_TRUE(Any([](const Config& config, const Problem&) { return config.accumulation_steps > 4; }));
  EXPECT_TRUE(Any([](const Config& config, const Problem&) { return config.data_degree > 8; }));
  EXPECT_TRUE(Any([](const Config&, const Problem& problem) { return problem.model.layers() > 3; }));
  EXPECT_TRUE(Any([](const Config& config, const Problem& problem) {
    return problem.model.has_dropout() && config.micro_batch_size % 2 == 1 &&
           problem.model.width() * problem.model.positions() % 2 == 1;
  }));
  EXPECT_TRUE(Any([](const Config& config, const Problem& problem) {
    return problem.steps >= 40 && config.schedule.kind == contract::Schedule::Kind::kOneCycle;
  }));
  EXPECT_TRUE(Any([](const Config& config, const Problem& problem) {
    const auto parameters = contract::Parameters(problem.model);
    return config.data_degree > 2 && config.zero_stage > 0 &&
           std::count_if(parameters.begin(), parameters.end(), [](const auto& one) { return !one.frozen; }) == 1;
  }));
  EXPECT_TRUE(Any([](const Config& config, const Problem& problem) {
    return config.storage == contract::DType::kBF16 && config.micro_batch_size * problem.model.positions() > 512;
  }));
}

TEST(OddCases, AreNotInSmoke) { EXPECT_TRUE(OddCases(Tier::kSmoke).problems.empty()); }

}  // namespace
}  // namespace plumbline::conformance
