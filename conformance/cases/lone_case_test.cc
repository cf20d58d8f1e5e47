// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/lone_case.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/exact_cases.h"
#include "conformance/cases/gpt2_cases.h"
#include "conformance/cases/llama_cases.h"

namespace plumbline::conformance {
namespace {

using contract::Case;

Case CaseOf(const CaseList& list, const CaseSpec& entry) {
  Case spec;
  spec.id = entry.id;
  spec.model = list.problems[static_cast<size_t>(entry.problem)].model;
  spec.steps = list.problems[static_cast<size_t>(entry.problem)].steps;
  spec.config = entry.config;
  return spec;
}

TEST(LoneCase, EveryListedCaseIsJudgeableAndLeadsBackToItsProblem) {
  for (const CaseList& list : {ExactCases(), Gpt2Cases(), LlamaCases()}) {
    for (const CaseSpec& entry : list.cases) {
      const Case spec = CaseOf(list, entry);
      EXPECT_EQ(WhyNotJudgeable(spec), std::nullopt) << spec.id;
      const Problem& expected = list.problems[static_cast<size_t>(entry.problem)];
      const Problem problem = ProblemOf(spec, "name");
      EXPECT_EQ(problem.name, "name");
      EXPECT_EQ(problem.model, expected.model);
      EXPECT_EQ(problem.plain, expected.plain) << spec.id;
      EXPECT_EQ(problem.steps, expected.steps);
    }
  }
}

TEST(LoneCase, HintsAreNoPartOfTheProblem) {
  const CaseList list = Gpt2Cases();
  Case spec = CaseOf(list, list.cases.front());
  const Problem without = ProblemOf(spec, "name");
  spec.config.hints = {{"steps_per_print", "10"}, {"zero_optimization.sub_group_size", "7"}};
  EXPECT_EQ(WhyNotJudgeable(spec), std::nullopt);
  EXPECT_EQ(ProblemOf(spec, "name").plain, without.plain);
}

TEST(LoneCase, SaysWhyItCannotBeJudged) {
  struct Refused {
    std::string part;
    std::function<void(Case&)> spoil;
  };
  const auto exact = [](Case& spec) { spec.model.exact().positions = 3; };
  const std::vector<Refused> both = {
      {"first_step is 1", [](Case& spec) { spec.first_step = 1; }},
      {"resume", [](Case& spec) { spec.resume = true; }},
      {"perturbation", [](Case& spec) { spec.perturbation.emplace(); }},
      {"dump_steps", [](Case& spec) { spec.dump_steps = {0}; }},
      {"save_steps", [](Case& spec) { spec.save_steps = {0}; }},
      {"phase_marks", [](Case& spec) { spec.phase_marks = true; }},
      {"fp64", [](Case& spec) { spec.config.storage = contract::DType::kF64; }},
      {"id is \"..\";", [](Case& spec) { spec.id = ".."; }},
      {"\\n\"", [](Case& spec) { spec.id = spec.id.substr(0, 8) + "\n"; }},
      {"xxx\"...; ", [](Case& spec) { spec.id += std::string(200, 'x'); }},
      {"id is \"other/", [](Case& spec) { spec.id = "other/" + spec.id; }},
      {"steps is too large", [](Case& spec) { spec.steps = int64_t{1} << 20; }},
      {"train_batch_size is too large", [](Case& spec) { spec.config.train_batch_size = int64_t{1} << 40; }},
  };
  const CaseList exact_list = ExactCases();
  const CaseList real_list = Gpt2Cases();
  const auto expect = [](Case spec, const Refused& refused) {
    refused.spoil(spec);
    const std::optional<std::string> why = WhyNotJudgeable(spec);
    ASSERT_TRUE(why) << refused.part;
    EXPECT_NE(why->find(refused.part), std::string::npos) << *why;
    EXPECT_NE(why->find("allowed: "), std::string::npos) << *why;
  };
  for (const Refused& refused : both) {
    expect(CaseOf(exact_list, exact_list.cases.front()), refused);
    expect(CaseOf(real_list, real_list.cases.front()), refused);
  }
  const Case first = CaseOf(exact_list, exact_list.cases.front());
  expect(first, {"positions is 3", exact});
  expect(first, {"model is too large",
                 [](Case& spec) { spec.model.exact().hidden = int64_t{1} << 20, spec.model.exact().width = 300; }});
  expect(first, {"ModularSGD", [](Case& spec) {
                   spec.model.exact().dropout = true;
                   spec.config.optimizer = contract::OptimizerKind::kModularSgd;
                 }});
  expect(CaseOf(real_list, real_list.cases.front()),
         {"train_batch_size is 6", [](Case& spec) { spec.config.train_batch_size = 6; }});
  expect(CaseOf(real_list, real_list.cases.front()),
         {"model is too large", [](Case& spec) { spec.model.gpt2().width = int64_t{1} << 20; }});
}

// One layer of gpt2 with 16 tensors; nothing but the layout and the steps can be too large.
Case TinyCase(int64_t ranks, int64_t accumulation, int64_t batch, int64_t steps) {
  Case spec;
  spec.id = "gpt2/tiny";
  contract::Gpt2Spec model;
  model.layers = model.width = model.heads = model.positions = model.hidden = 1;
  model.vocab = 2;
  spec.model = model;
  spec.steps = steps;
  spec.config.optimizer = contract::OptimizerKind::kAdamW;
  spec.config.train_batch_size = batch;
  spec.config.data_degree = ranks;
  spec.config.accumulation_steps = accumulation;
  spec.config.micro_batch_size = batch / accumulation / ranks;
  return spec;
}

TEST(LoneCase, BoundsWhatGrowsWithTheNumberOfRanksOfMicroBatchesAndOfSteps) {
  EXPECT_EQ(WhyNotJudgeable(TinyCase(256, 1, 256, 64)), std::nullopt);
  EXPECT_EQ(WhyNotJudgeable(TinyCase(1, 2048, 2048, 1)), std::nullopt);
  EXPECT_EQ(WhyNotJudgeable(TinyCase(1, 1, 4, 262144)), std::nullopt);
  EXPECT_EQ(WhyNotJudgeable(TinyCase(257, 1, 4 * 257, 1)), "config.mesh.data is 257; allowed: at most 256");
  EXPECT_EQ(WhyNotJudgeable(TinyCase(1'000'000, 1, 1'000'000, 1)), "config.mesh.data is 1000000; allowed: at most 256");
  EXPECT_EQ(WhyNotJudgeable(TinyCase(1, 1, 4, 262145)),
            "steps is too large: 4194320 tensors in all steps of all ranks; allowed: at most 4194304");
  EXPECT_EQ(WhyNotJudgeable(TinyCase(256, 1, 256, 1025)),
            "steps is too large: 4198400 tensors in all steps of all ranks; allowed: at most 4194304");
  EXPECT_EQ(WhyNotJudgeable(TinyCase(1, 2052, 2052, 1)),
            "config.gradient_accumulation_steps is too large: 4210704 tokens in all, once for each micro-batch; "
            "allowed: at most 4194304");
  EXPECT_EQ(WhyNotJudgeable(TinyCase(4, 512, 4096, 1)),
            "config.gradient_accumulation_steps is too large: 8388608 tokens in all, once for each micro-batch; "
            "allowed: at most 4194304");
}

}  // namespace
}  // namespace plumbline::conformance
