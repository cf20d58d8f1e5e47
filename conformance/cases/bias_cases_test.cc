// SPDX-License-Identifier: Apache-2.0
// What the search for a small bias needs of its cases: large tensors, many steps, nothing that hides a factor.
#include "conformance/cases/bias_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plumbline::conformance {
namespace {

TEST(BiasCases, AreInFullAndNightlyAndNotInSmoke) {
  EXPECT_TRUE(BiasCases(Tier::kSmoke).cases.empty());
  EXPECT_FALSE(BiasCases(Tier::kFull).cases.empty());
  EXPECT_FALSE(BiasCases(Tier::kNightly).cases.empty());
}

TEST(BiasCases, HaveConfigsThatParseBackAndDivideAndStoreInBf16) {
  for (const CaseSpec& spec : BiasCases(Tier::kFull).cases) {
    EXPECT_EQ(contract::ParseRunConfig(contract::ToJson(spec.config), spec.id), spec.config) << spec.id;
    EXPECT_EQ(spec.config.train_batch_size,
              spec.config.micro_batch_size * spec.config.accumulation_steps * spec.config.data_degree);
    EXPECT_EQ(spec.config.storage, contract::DType::kBF16) << spec.id;
  }
}

TEST(BiasProblem, HasAllMatricesOfALayerAndTheEmbeddingLargeEnough) {
  const Problem problem = BiasProblem();
  const auto parameters = contract::Parameters(problem.model);
  EXPECT_EQ(std::count_if(parameters.begin(), parameters.end(),
                          [](const contract::ParameterSpec& parameter) { return parameter.numel() >= 4096; }),
            5);
  EXPECT_GE(problem.unrelated_states, 16);
}

TEST(BiasProblem, HidesNoConstantFactor) {
  const contract::RunConfig plain = BiasProblem().plain;
  EXPECT_EQ(plain.optimizer, contract::OptimizerKind::kSgd);
  EXPECT_EQ(plain.gradient_clipping, 0);
}

}  // namespace
}  // namespace plumbline::conformance
