// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/skipped_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "conformance/cases/gpt2_cases.h"
#include "conformance/contract/case_file.h"
#include "conformance/runner/real_runs.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kSeeds = 20;

// A text with as many letters as English has, most of them seldom.
contract::TokenSource Text() {
  contract::TokenSource source;
  source.reduce_modulo_vocab = true;
  uint64_t state = 12345;
  for (int i = 0; i < 11000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double uniform = static_cast<double>(state >> 11) * 0x1p-53;
    source.tokens.push_back(32 + static_cast<int32_t>(90 * uniform * uniform * uniform));
  }
  return source;
}

Problem ProblemNamed(std::string_view name) {
  for (const Problem& problem : Gpt2Cases().problems) {
    if (problem.name == name) return problem;
  }
  ADD_FAILURE() << name;
  return {};
}

RealStart Before(const Problem& problem) {
  RealStart start{contract::MakeInitialRealState(problem.model.gpt2(), problem.plain, 7), 1};
  for (contract::RealParameterState& entry : start.state) std::fill(entry.moment.begin(), entry.moment.end(), 0.25f);
  return start;
}

std::vector<SkippedStart> StartsOf(const Problem& problem, uint64_t seed) {
  return MakeSkippedStarts(problem, seed, Text(), Before(problem), kSkippedStep);
}

// Of the rows of the embedding those that are not finite throughout.
std::vector<int64_t> RowsWithout(const SkippedStart& start, int64_t width) {
  const std::vector<float>& embedding = start.start->state.front().master;
  std::vector<int64_t> rows;
  for (size_t i = 0; i < embedding.size(); i += static_cast<size_t>(width)) {
    const auto begin = embedding.begin() + static_cast<int64_t>(i);
    const auto finite = std::count_if(begin, begin + width, [](float value) { return std::isfinite(value); });
    EXPECT_TRUE(finite == 0 || finite == width);
    if (finite == 0) rows.push_back(static_cast<int64_t>(i) / width);
  }
  return rows;
}

TEST(MakeSkippedStarts, TakeAValueFromATokenThatBeginsASampleAndIsNotInAStepThatFollows) {
  const contract::TokenSource text = Text();
  for (const Problem& problem : Gpt2Cases().problems) {
    int64_t num_followed = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const int64_t batch = problem.plain.train_batch_size;
      const contract::Batches batches = contract::MakeBatches(text, problem.model, {seed, kSkippedStep, 2, batch});
      const auto next = batches.tokens.begin() + batches.Index(kSkippedStep + 1, 0, 0);
      for (const SkippedStart& start : StartsOf(problem, seed)) {
        const std::vector<int64_t> rows = RowsWithout(start, problem.model.gpt2().width);
        ASSERT_EQ(rows.size(), 1u) << problem.name;
        bool begins = false;
        for (int64_t sample = 0; sample < batch; ++sample) {
          begins |= batches.tokens[static_cast<size_t>(batches.Index(kSkippedStep, sample, 0))] == rows.front();
        }
        EXPECT_TRUE(begins) << problem.name << ", seed " << seed;
        const bool is_absent = std::find(next, batches.tokens.end(), rows.front()) == batches.tokens.end();
        EXPECT_EQ(start.is_followed, is_absent && start.value == "nan") << problem.name << ", seed " << seed;
        num_followed += start.is_followed ? 1 : 0;
      }
    }
    if (problem.name == "tied-adamw") {
      EXPECT_EQ(num_followed, kSeeds);
    }
  }
}

// A count of updates is in nothing but AdamW's corrections, and a rate only in a schedule.
TEST(MakeSkippedStarts, AreFollowedInAProblemWithAdamWInItsWarmUp) {
  const contract::RunConfig& config = ProblemNamed("tied-adamw").plain;
  EXPECT_EQ(config.optimizer, contract::OptimizerKind::kAdamW);
  EXPECT_GT(config.schedule.warmup_num_steps, kSkippedStep + 1);
}

TEST(MakeSkippedStarts, HoldOneOrBothValuesAndTheStateBeforeOtherwise) {
  const Problem untied = ProblemNamed("untied-sgd");
  const std::vector<SkippedStart> both = StartsOf(untied, 3);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].value, "inf");
  EXPECT_EQ(both[1].value, "nan");
  EXPECT_EQ(both[0].model, untied.model);
  const std::vector<contract::RealParameterState> before = Before(untied).state;
  ASSERT_EQ(both[0].start->state.size(), before.size());
  for (size_t i = 1; i < before.size(); ++i) EXPECT_EQ(both[0].start->state[i].master, before[i].master);
  EXPECT_EQ(both[0].start->num_updates, 1);
  EXPECT_EQ(StartsOf(ProblemNamed("tied-adamw"), 3).size(), 1u);
}

TEST(UntiedState, PutsACopyOfTheEmbeddingWhereTheModelHasItsHead) {
  for (const char* name : {"tied-adamw", "frozen-momentum", "frozen-adamw"}) {
    const Problem problem = ProblemNamed(name);
    const std::vector<contract::RealParameterState> before = Before(problem).state;
    const std::vector<contract::RealParameterState> state = UntiedState(problem, before);
    const std::vector<contract::ParameterSpec> parameters = contract::Parameters(UntiedModel(problem.model));
    ASSERT_EQ(state.size(), parameters.size()) << name;
    for (size_t i = 0; i < state.size(); ++i) {
      const auto numel = static_cast<size_t>(parameters[i].numel());
      EXPECT_EQ(state[i].master.size(), numel) << name << ", " << parameters[i].name;
      EXPECT_EQ(state[i].moment.size(), parameters[i].frozen ? 0 : numel) << name << ", " << parameters[i].name;
      if (parameters[i].name != "head.weight") continue;
      EXPECT_EQ(state[i].master, before.front().master);
      EXPECT_EQ(state[i].moment.front(), before.front().moment.empty() ? 0.0f : 0.25f) << name;
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
