// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_check/listed_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/engine_check/hints.h"
#include "conformance/contract/model_spec.h"

namespace plumbline::cli {
namespace {

contract::EngineDescription Everything() {
  return {"all",
          "1",
          true,
          true,
          {"exact", "gpt2", "llama"},
          {"fp64", "fp32", "bf16", "fp16"},
          {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"},
          {0, 1, 2, 3},
          64,
          {"dropout", "grouped_heads", "accumulation", "unequal_lengths", "unit_clipping", "norm_history"}};
}

const ListedStep& Named(const std::vector<ListedStep>& steps, const std::string& name) {
  return *std::find_if(steps.begin(), steps.end(), [&](const ListedStep& step) { return step.name == name; });
}

TEST(ListedSteps, HaveACaseOfEachThingThatCanBeClaimedAndAHint) {
  const std::vector<ListedStep> steps = ListedSteps(Everything());
  ASSERT_EQ(steps.size(), 14u);
  for (const ListedStep& step : steps) {
    EXPECT_TRUE(step.spec.has_value()) << step.name;
    EXPECT_NE(HintOf(step.name), "") << step.name;
  }
}

TEST(ListedSteps, AreOfWhatTheyAreNamedFor) {
  const std::vector<ListedStep> steps = ListedSteps(Everything());
  EXPECT_EQ(Named(steps, "long run").spec->config.data_degree, 1);
  EXPECT_GT(Named(steps, "accumulation").spec->config.accumulation_steps, 1);
  EXPECT_TRUE(Named(steps, "dropout").spec->model.has_dropout());
  EXPECT_EQ(Named(steps, "bf16").spec->config.storage, contract::DType::kBF16);
  EXPECT_EQ(Named(steps, "fp16").spec->config.storage, contract::DType::kF16);
  for (int64_t stage = 0; stage <= 3; ++stage) {
    const contract::Case& spec = *Named(steps, stage == 0 ? "ranks" : "zero " + std::to_string(stage)).spec;
    EXPECT_EQ(spec.config.zero_stage, stage);
    EXPECT_GT(spec.config.data_degree, 1);
  }
  const contract::ModelSpec& grouped = Named(steps, "grouped_heads").spec->model;
  EXPECT_GT(grouped.kv_heads(), 1);
  EXPECT_LT(grouped.kv_heads(), grouped.heads());
  EXPECT_EQ(Named(steps, "llama ranks").spec->model.family(), "llama");
}

TEST(ListedSteps, HaveNoCaseOfWhatIsNotClaimed) {
  contract::EngineDescription description = Everything();
  description.families = {"exact"};
  description.dtypes = {"fp32"};
  description.zero_stages = {0};
  description.features.clear();
  for (const ListedStep& step : ListedSteps(description)) {
    EXPECT_EQ(step.spec.has_value(), step.name == "long run" || step.name == "ranks") << step.name;
  }
}

TEST(Hints, AreThereForTheFirstStepsAndForNoOther) {
  for (const char* step :
       {"describe", "case", "trace", "loss", "gradient", "update", "dump", "steps", "resume", "batch"}) {
    EXPECT_NE(HintOf(step), "") << step;
  }
  EXPECT_EQ(HintOf("nothing"), "");
}

}  // namespace
}  // namespace plumbline::cli
