// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/skipped_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
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

std::optional<SkippedStart> StartNamed(const Problem& problem, uint64_t seed, std::string_view value) {
  for (const SkippedStart& start : StartsOf(problem, seed)) {
    if (start.value == value) return start;
  }
  return std::nullopt;
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

TEST(MakeSkippedStarts, TakeTheValueFromATokenThatBeginsASample) {
  const contract::TokenSource text = Text();
  for (const Problem& problem : Gpt2Cases().problems) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const int64_t batch = problem.plain.train_batch_size;
      const contract::Batches batches = contract::MakeBatches(text, problem.model, {seed, kSkippedStep, 1, batch});
      const std::vector<int64_t> rows = RowsWithout(*StartNamed(problem, seed, "nan"), problem.model.gpt2().width);
      ASSERT_EQ(rows.size(), 1u) << problem.name;
      bool begins = false;
      for (int64_t sample = 0; sample < batch; ++sample) {
        begins |= batches.tokens[static_cast<size_t>(batches.Index(kSkippedStep, sample, 0))] == rows.front();
      }
      EXPECT_TRUE(begins) << problem.name << ", seed " << seed;
    }
  }
}

TEST(MakeSkippedStarts, AreFollowedByTheTextWithoutTheToken) {
  const contract::TokenSource text = Text();
  for (const Problem& problem : Gpt2Cases().problems) {
    const SkippedStart start = *StartNamed(problem, 3, "nan");
    const bool needs_norms = problem.plain.optimizer == contract::OptimizerKind::kLamb ||
                             problem.plain.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit;
    ASSERT_EQ(start.is_followed(), !needs_norms) << problem.name;
    if (needs_norms) continue;
    const contract::Batches whole =
        contract::MakeBatches(text, problem.model, {3, kSkippedStep, 2, problem.plain.train_batch_size});
    const int64_t token = RowsWithout(start, problem.model.gpt2().width).front();
    EXPECT_EQ(start.batches->labels, whole.labels);
    EXPECT_EQ(start.batches->loss_weights, whole.loss_weights);
    ASSERT_EQ(start.batches->tokens.size(), whole.tokens.size());
    const auto second = static_cast<size_t>(whole.Index(kSkippedStep + 1, 0, 0));
    for (size_t i = 0; i < whole.tokens.size(); ++i) {
      const int32_t seen = start.batches->tokens[i];
      const bool is_kept = i < second || whole.tokens[i] != token;
      EXPECT_EQ(seen == whole.tokens[i], is_kept) << problem.name << ", " << i;
      if (i >= second) {
        EXPECT_NE(seen, token) << problem.name << ", " << i;
      }
      EXPECT_LT(seen, problem.model.gpt2().vocab);
    }
  }
}

// A count of updates is in nothing but AdamW's corrections, and a rate only in a schedule.
TEST(MakeSkippedStarts, AreFollowedInAProblemWithAdamWInItsWarmUp) {
  const contract::RunConfig& config = ProblemNamed("tied-adamw").plain;
  EXPECT_EQ(config.optimizer, contract::OptimizerKind::kAdamW);
  EXPECT_GT(config.schedule.warmup_num_steps, kSkippedStep + 1);
  EXPECT_TRUE(CountsUpdates(config));
  EXPECT_TRUE(CountsUpdates(ProblemNamed("history-lion").plain));
  EXPECT_FALSE(CountsUpdates(ProblemNamed("untied-sgd").plain));
}

TEST(MakeSkippedStarts, HoldTheStateBeforeButForTheValue) {
  const Problem untied = ProblemNamed("untied-sgd");
  const SkippedStart start = *StartNamed(untied, 3, "nan");
  EXPECT_EQ(start.model, untied.model);
  const std::vector<contract::RealParameterState> before = Before(untied).state;
  ASSERT_EQ(start.start->state.size(), before.size());
  for (size_t i = 1; i < before.size(); ++i) EXPECT_EQ(start.start->state[i].master, before[i].master);
  EXPECT_EQ(start.start->num_updates, 1);
}

// The weights of the skipped step itself are finite: what overflows is a sum of the backward pass.
TEST(MakeSkippedStarts, OverflowWhereTheNormIsExemptOrTheHeadIsNotTied) {
  for (const Problem& problem : Gpt2Cases().problems) {
    const std::optional<SkippedStart> start = StartNamed(problem, 3, "inf");
    ASSERT_EQ(start.has_value(), !problem.model.has_tied_head() || problem.name == "coupled-adam") << problem.name;
    if (!start) continue;
    EXPECT_FALSE(start->is_followed());
    for (const contract::RealParameterState& entry : start->start->state) {
      for (float value : entry.master) ASSERT_TRUE(std::isfinite(value)) << problem.name;
    }
  }
}

TEST(MakeSkippedStarts, DoNotOverflowInModelsThatAreTooNarrowOrHaveTooFewLabels) {
  Problem problem = ProblemNamed("untied-sgd");
  const auto overflows = [&](int64_t width, int64_t vocab, double dropout) {
    contract::Gpt2Spec& model = problem.model.gpt2();
    model.width = width;
    model.heads = 1;
    model.vocab = vocab;
    model.dropout = dropout;
    return StartNamed(problem, 3, "inf").has_value();
  };
  EXPECT_TRUE(overflows(8, 67, 0));
  EXPECT_FALSE(overflows(4, 67, 0));
  EXPECT_FALSE(overflows(2, 67, 0));
  EXPECT_FALSE(overflows(8, 67, 0.5));
  EXPECT_FALSE(overflows(8, 2, 0));
  EXPECT_TRUE(overflows(64, 2, 0));
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
