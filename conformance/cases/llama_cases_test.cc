// SPDX-License-Identifier: Apache-2.0
// The list must keep the traps that its cases exist for: this test fails when an edit of problems or axes loses one.
#include "conformance/cases/llama_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "conformance/contract/batch_source.h"

namespace plumbline::conformance {
namespace {

using contract::LlamaSpec;

bool AnyProblem(const std::function<bool(const Problem&, const LlamaSpec&)>& has) {
  const CaseList list = LlamaCases();
  return std::any_of(list.problems.begin(), list.problems.end(),
                     [&](const Problem& problem) { return has(problem, problem.model.llama()); });
}

TEST(LlamaCases, HaveUniqueIdsAndConfigsThatParseBackAndDivide) {
  std::set<std::string> ids;
  for (const CaseSpec& spec : LlamaCases(Tier::kFull).cases) {
    EXPECT_TRUE(ids.insert(spec.id).second) << spec.id;
    EXPECT_TRUE(spec.id.starts_with("llama/")) << spec.id;
    EXPECT_EQ(contract::ParseRunConfig(contract::ToJson(spec.config), spec.id), spec.config) << spec.id;
    EXPECT_EQ(spec.config.train_batch_size,
              spec.config.micro_batch_size * spec.config.accumulation_steps * spec.config.data_degree);
  }
  EXPECT_GE(ids.size(), 35u);
}

TEST(LlamaCases, HaveEachDegreeStageAndStorageInEveryTierAndEachPairInTheFullOne) {
  std::set<int64_t> degrees, stages;
  std::set<contract::DType> storages;
  for (const CaseSpec& spec : LlamaCases().cases) {
    degrees.insert(spec.config.data_degree);
    stages.insert(spec.config.zero_stage);
    storages.insert(spec.config.storage);
  }
  EXPECT_EQ(degrees, (std::set<int64_t>{1, 2, 3, 4, 8}));
  EXPECT_EQ(stages, (std::set<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(storages.size(), 3u);
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const CaseSpec& spec : LlamaCases(Tier::kFull).cases) {
    pairs.insert({spec.config.data_degree, spec.config.zero_stage});
  }
  EXPECT_EQ(pairs.size(), 20u);
}

TEST(LlamaCases, HaveWhatLlamaHasAndGpt2HasNot) {
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) {
    return model.kv_heads > 1 && model.kv_heads < model.heads && model.heads / model.kv_heads != model.kv_heads;
  })) << "heads i K / H and i mod K are others, and so are H / K and K";
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.kv_heads == 1; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.kv_heads == model.heads; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.head_width() / 2 % 2 == 1; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.rope_theta != 10000; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.rope_theta == 10000; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.norm_epsilon > 1e-3; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.unused; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) { return model.frozen.size() > 3; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const LlamaSpec& model) {
    return std::count(model.frozen.begin(), model.frozen.end(), "head.weight") == 1;
  })) << "a frozen head";
}

TEST(LlamaCases, HaveUnequalLengthsWithAndWithoutDropoutAndWholeSamples) {
  for (bool unequal : {false, true}) {
    EXPECT_TRUE(AnyProblem([&](const Problem&, const LlamaSpec& model) {
      return model.unequal_lengths == unequal && model.dropout == 0;
    }));
  }
  EXPECT_TRUE(
      AnyProblem([](const Problem&, const LlamaSpec& model) { return model.unequal_lengths && model.dropout > 0; }));
}

TEST(LlamaCases, HideNoConstantFactorInOneOfThem) {
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const LlamaSpec&) {
    return problem.plain.optimizer == contract::OptimizerKind::kSgd && problem.plain.params.momentum == 0 &&
           problem.plain.params.weight_decay == 0 && problem.plain.gradient_clipping == 0 &&
           problem.plain.schedule.kind == contract::Schedule::Kind::kConstant;
  }));
}

TEST(LlamaCases, HaveSchedulesThatGpt2HasNot) {
  using Kind = contract::Schedule::Kind;
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const LlamaSpec&) {
    const contract::Schedule& schedule = problem.plain.schedule;
    return schedule.kind == Kind::kWarmupCosine && schedule.total_num_steps < schedule.warmup_num_steps &&
           schedule.warmup_num_steps + 2 < problem.steps && schedule.cos_min_ratio > 0.1;
  })) << "fewer steps in all than the warm-up has";
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const LlamaSpec&) {
    const contract::Cycle& cycle = problem.plain.schedule.cycle;
    return problem.plain.schedule.kind == Kind::kOneCycle && !contract::HasBetas(problem.plain.optimizer) &&
           problem.plain.params.momentum > 0 && cycle.moves_momentum && cycle.first_stairs > 1 &&
           cycle.second_stairs == 0 && cycle.decay_steps > 1 && cycle.decay_lr_rate > 0;
  })) << "a cycle of an optimizer without betas";
}

// What an engine that computes only so many positions as a micro-batch needs can get wrong.
TEST(LlamaCases, MakeMicroBatchesLongerAndShorterThanTheOneBefore) {
  const contract::TokenSource source{std::vector<int32_t>(500, 3), true};
  const CaseList list = LlamaCases();
  bool longer = false, shorter = false;
  for (const CaseSpec& spec : list.cases) {
    const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
    if (!problem.model.has_unequal_lengths()) continue;
    const contract::Batches batches =
        contract::MakeBatches(source, problem.model, {7, 0, problem.steps, spec.config.train_batch_size});
    int64_t before = 0;  // of rank 0
    for (int64_t step = 0; step < problem.steps; ++step) {
      for (int64_t a = 0; a < spec.config.accumulation_steps; ++a) {
        const int64_t first = a * spec.config.data_degree * spec.config.micro_batch_size;
        int64_t longest = 0;
        for (int64_t i = 0; i < spec.config.micro_batch_size; ++i) {
          longest = std::max(longest, batches.Length(step, first + i));
        }
        longer |= before > 0 && longest > before;
        shorter |= longest < before;
        before = longest;
      }
    }
  }
  EXPECT_TRUE(longer && shorter);
}

}  // namespace
}  // namespace plumbline::conformance
