// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/first_case.h"

#include <gtest/gtest.h>

#include "conformance/contract/error.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::cli {
namespace {

contract::EngineDescription Claiming(std::vector<std::string> families, std::vector<std::string> dtypes,
                                     std::vector<std::string> optimizers) {
  contract::EngineDescription description;
  description.families = std::move(families);
  description.dtypes = std::move(dtypes);
  description.optimizers = std::move(optimizers);
  return description;
}

TEST(FirstCase, IsOfTheFirstFamilyStorageTypeAndOptimizerThatAreClaimed) {
  const contract::Case exact = FirstCase(Claiming({"gpt2", "exact"}, {"bf16", "fp32"}, {"AdamW", "ModularSGD"}), 3);
  EXPECT_EQ(exact.model.family(), "exact");
  EXPECT_EQ(exact.config.storage, contract::DType::kF32);
  EXPECT_EQ(exact.config.optimizer, contract::OptimizerKind::kModularSgd);
  EXPECT_EQ(exact.steps, 3);
  const contract::Case llama = FirstCase(Claiming({"llama"}, {"bf16"}, {"Lion", "AdamW"}), 1);
  EXPECT_EQ(llama.model.family(), "llama");
  EXPECT_EQ(llama.config.storage, contract::DType::kBF16);
  EXPECT_EQ(llama.config.optimizer, contract::OptimizerKind::kAdamW);
}

TEST(FirstCase, SaysWhatADescriptionDoesNotList) {
  const auto refusal = [](const contract::EngineDescription& description) {
    return contract::testing::ErrorMessage(contract::ErrorCode::kInvalidArgument, [&] { FirstCase(description, 1); });
  };
  EXPECT_NE(refusal(Claiming({}, {"fp32"}, {"SGD"})).find("families"), std::string::npos);
  EXPECT_NE(refusal(Claiming({"exact"}, {"fp8"}, {"ModularSGD"})).find("dtypes"), std::string::npos);
  EXPECT_NE(refusal(Claiming({"exact"}, {"fp32"}, {"SGD"})).find("optimizers have none that is known of family exact"),
            std::string::npos);
}

}  // namespace
}  // namespace plumbline::cli
