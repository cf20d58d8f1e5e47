// SPDX-License-Identifier: Apache-2.0
// The list must keep the traps that its cases exist for: this test fails when an edit of problems or axes loses one.
#include "conformance/cases/gpt2_cases.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "conformance/contract/batch_source.h"

namespace plumbline::conformance {
namespace {

bool AnyProblem(const std::function<bool(const Problem&, const contract::Gpt2Spec&)>& has) {
  const CaseList list = Gpt2Cases();
  return std::any_of(list.problems.begin(), list.problems.end(),
                     [&](const Problem& problem) { return has(problem, problem.model.gpt2()); });
}

TEST(Gpt2Cases, HaveUniqueIdsAndConfigsThatParseBackAndDivide) {
  std::set<std::string> ids;
  for (const CaseSpec& spec : Gpt2Cases().cases) {
    EXPECT_TRUE(ids.insert(spec.id).second) << spec.id;
    EXPECT_EQ(contract::ParseRunConfig(contract::ToJson(spec.config), spec.id), spec.config) << spec.id;
    EXPECT_EQ(spec.config.train_batch_size,
              spec.config.micro_batch_size * spec.config.accumulation_steps * spec.config.data_degree);
  }
  EXPECT_GE(ids.size(), 25u);
}

TEST(Gpt2Cases, HaveEveryPairOfDegreeAndStageFromFullOnAndEachOfBothInSmoke) {
  for (Tier tier : {Tier::kSmoke, Tier::kFull}) {
    std::set<int64_t> degrees, stages;
    std::set<std::pair<int64_t, int64_t>> pairs;
    for (const CaseSpec& spec : Gpt2Cases(tier).cases) {
      degrees.insert(spec.config.data_degree);
      stages.insert(spec.config.zero_stage);
      pairs.insert({spec.config.data_degree, spec.config.zero_stage});
    }
    EXPECT_EQ(degrees, (std::set<int64_t>{1, 2, 3, 4, 8}));
    EXPECT_EQ(stages, (std::set<int64_t>{0, 1, 2, 3}));
    EXPECT_GE(pairs.size(), tier == Tier::kFull ? degrees.size() * stages.size() : 15u);
  }
}

TEST(Gpt2Cases, OfSmokeAreInBf16WhereDefectsAreTriedInIt) {
  std::set<std::string> in_bf16;
  const CaseList smoke = Gpt2Cases(Tier::kSmoke);
  for (const CaseSpec& spec : smoke.cases) {
    if (spec.config.storage == contract::DType::kBF16) {
      in_bf16.insert(smoke.problems[static_cast<size_t>(spec.problem)].name);
    }
  }
  EXPECT_EQ(in_bf16, (std::set<std::string>{"tied-adamw", "untied-sgd"}));
}

TEST(Gpt2Cases, HaveTheProblemsThatRealEnginesGetWrong) {
  using contract::OptimizerKind;
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec&) {
    return problem.plain.optimizer == OptimizerKind::kSgd && problem.plain.params.momentum == 0 &&
           problem.plain.params.weight_decay == 0 && problem.plain.gradient_clipping == 0 &&
           problem.plain.schedule.kind == contract::Schedule::Kind::kConstant;
  })) << "nothing that hides a constant factor";
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec&) {
    return problem.plain.optimizer == OptimizerKind::kSgd && problem.plain.params.weight_decay > 0 &&
           problem.plain.gradient_clipping > 0 && problem.plain.gradient_clipping < 1;
  })) << "a decay that clipping could reach";
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec& model) {
    return problem.plain.optimizer == OptimizerKind::kAdamW && problem.plain.params.weight_decay > 0 && model.unused;
  })) << "an unused parameter that AdamW decays";
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec&) {
    return problem.plain.params.momentum != 0 && problem.plain.params.momentum != 0.9;
  })) << "a momentum that nobody takes for the default";
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec&) {
    return problem.plain.optimizer == OptimizerKind::kAdamW && problem.plain.params.eps != 1e-8;
  })) << "an epsilon that is not the default";
  EXPECT_TRUE(AnyProblem([](const Problem&, const contract::Gpt2Spec& model) { return !model.tied_head; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const contract::Gpt2Spec& model) { return model.unused; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const contract::Gpt2Spec& model) { return model.dropout > 0; }));
  EXPECT_TRUE(AnyProblem([](const Problem&, const contract::Gpt2Spec& model) {
    return model.tied_head && std::count(model.frozen.begin(), model.frozen.end(), "embed.weight") == 1;
  })) << "a tied weight that is frozen";
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec&) {
    return problem.plain.optimizer == OptimizerKind::kAdamW && problem.plain.groups.size() >= 2 &&
           problem.plain.schedule.kind == contract::Schedule::Kind::kWarmup && problem.plain.schedule.linear;
  }));
}

TEST(Gpt2Cases, HaveEveryScheduleAndStepsOnBothSidesOfEachOfItsTurns) {
  using Kind = contract::Schedule::Kind;
  for (Kind kind : {Kind::kConstant, Kind::kWarmup, Kind::kWarmupDecay, Kind::kWarmupCosine, Kind::kOneCycle}) {
    EXPECT_TRUE(AnyProblem([&](const Problem& problem, const contract::Gpt2Spec&) {
      const contract::Schedule& schedule = problem.plain.schedule;
      if (schedule.kind != kind) return false;
      const int64_t last = problem.steps - 1;
      if (kind == Kind::kWarmup) return schedule.warmup_num_steps + 1 < last;
      if (kind == Kind::kWarmupDecay || kind == Kind::kWarmupCosine) {
        return std::max<int64_t>(2, schedule.warmup_num_steps) + 2 < schedule.total_num_steps &&
               schedule.total_num_steps + 2 < last;
      }
      const contract::Cycle& cycle = schedule.cycle;
      return kind == Kind::kConstant ||
             (cycle.first_steps != cycle.second_steps && cycle.first_steps + cycle.second_steps + 2 < last &&
              cycle.decay_steps > 1 && cycle.decay_lr_rate > 0);
    })) << static_cast<int>(kind);
  }
}

bool AnyCycle(const std::function<bool(const contract::RunConfig&, const contract::Cycle&)>& has) {
  return AnyProblem([&](const Problem& problem, const contract::Gpt2Spec&) {
    const contract::Schedule& schedule = problem.plain.schedule;
    return schedule.kind == contract::Schedule::Kind::kOneCycle && has(problem.plain, schedule.cycle);
  });
}

bool HasGroupWithBetas(const contract::RunConfig& config) {
  return std::any_of(config.groups.begin(), config.groups.end(),
                     [](const contract::ParameterGroup& group) { return group.betas.has_value(); });
}

TEST(Gpt2Cases, HaveCyclesThatMoveBetasAndThatLeaveThem) {
  EXPECT_TRUE(AnyCycle([](const contract::RunConfig& config, const contract::Cycle& cycle) {
    return cycle.moves_momentum && HasBetas(config.optimizer) && HasGroupWithBetas(config) &&
           cycle.max_momentum != config.params.beta1 && cycle.min_momentum != config.params.beta1 &&
           cycle.max_momentum != 0.9;
  })) << "nobody takes its betas for those of the config";
  EXPECT_TRUE(AnyCycle([](const contract::RunConfig& config, const contract::Cycle& cycle) {
    return !cycle.moves_momentum && HasBetas(config.optimizer) && HasGroupWithBetas(config);
  }));
}

TEST(Gpt2Cases, HaveCyclesWithStairsDownAndWithoutStairsUpAndWithoutDecay) {
  EXPECT_TRUE(AnyCycle([](const contract::RunConfig&, const contract::Cycle& cycle) {
    return cycle.first_stairs > 1 && cycle.first_stairs < cycle.first_steps && cycle.second_stairs > 1 &&
           cycle.second_stairs < cycle.second_steps && cycle.second_stairs != cycle.first_stairs;
  })) << "stairs of two numbers";
  EXPECT_TRUE(AnyCycle([](const contract::RunConfig&, const contract::Cycle& cycle) {
    return cycle.first_stairs == 0 && cycle.second_stairs > 1;
  }));
  EXPECT_TRUE(AnyCycle([](const contract::RunConfig&, const contract::Cycle& cycle) {
    return cycle.decay_steps == 0 && cycle.decay_lr_rate > 0;
  }));
}

TEST(Gpt2Cases, WarmUpInALineAndLogarithmicallyAndInLessThanTwoSteps) {
  const auto any = [](bool linear, int64_t at_most) {
    return AnyProblem([&](const Problem& problem, const contract::Gpt2Spec&) {
      const contract::Schedule& schedule = problem.plain.schedule;
      return schedule.kind != contract::Schedule::Kind::kConstant &&
             schedule.kind != contract::Schedule::Kind::kOneCycle && schedule.linear == linear &&
             schedule.warmup_num_steps <= at_most;
    });
  };
  EXPECT_TRUE(any(true, 10));
  EXPECT_TRUE(any(false, 10));
  EXPECT_TRUE(any(false, 1));
}

TEST(Gpt2Cases, HaveAFrozenVectorOfOneElementMoreThanMemoryIsAlignedTo) {
  EXPECT_TRUE(AnyProblem([](const Problem&, const contract::Gpt2Spec& model) {
    const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
    return std::any_of(parameters.begin(), parameters.end(), [](const contract::ParameterSpec& parameter) {
      return parameter.frozen && parameter.numel() % 32 == 1;
    });
  }));
}

TEST(Gpt2Cases, HaveAnEmbeddingBetweenOneLayerAndTwoUnderTheStrictLimitsOfGathers) {
  const CaseList list = Gpt2Cases();
  EXPECT_TRUE(std::any_of(list.cases.begin(), list.cases.end(), [&](const CaseSpec& spec) {
    const Problem& problem = list.problems[static_cast<size_t>(spec.problem)];
    const int64_t embedding = problem.model.vocab() * problem.model.gpt2().width;
    return spec.config.zero_stage == 3 && spec.config.prefetch_bucket_elems == 0 && problem.model.gpt2().layers > 1 &&
           spec.config.max_live_elems / 2 < embedding && embedding < spec.config.max_live_elems;
  }));
}

TEST(Gpt2Cases, HaveParameterGroupsThatTakeSomeParametersAndLeaveOthers) {
  for (const Problem& problem : Gpt2Cases().problems) {
    for (const contract::ParameterGroup& group : problem.plain.groups) {
      EXPECT_TRUE(group.lr || group.weight_decay || group.betas || !group.clip) << group.match;
    }
  }
}

TEST(Gpt2Cases, HaveEveryOptimizerAndEveryKindOfClipping) {
  using Kind = contract::AdaptiveClipping::Kind;
  std::set<contract::OptimizerKind> optimizers;
  std::set<Kind> clippings;
  bool nesterov = false, betas = false, exempt = false;
  for (const Problem& problem : Gpt2Cases().problems) {
    optimizers.insert(problem.plain.optimizer);
    clippings.insert(problem.plain.adaptive_clipping.kind);
    nesterov |= problem.plain.params.nesterov;
    for (const contract::ParameterGroup& group : problem.plain.groups) {
      betas |= group.betas.has_value();
      exempt |= !group.clip;
    }
  }
  EXPECT_EQ(optimizers.size(), 5u);
  EXPECT_EQ(clippings, (std::set<Kind>{Kind::kNone, Kind::kUnit, Kind::kHistory}));
  EXPECT_TRUE(nesterov && betas && exempt);
}

// What a norm of parts of a model can get wrong: parameters that are not in it, and parts that end within a shard.
TEST(Gpt2Cases, HaveALambThatClipsWithFrozenParametersAndOneLongerThanABlock) {
  constexpr int64_t kBlockElems = 1024;  // of kernels/lamb, and of many a reduction
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec& model) {
    const std::vector<contract::ParameterSpec> parameters = contract::Parameters(model);
    return problem.plain.optimizer == contract::OptimizerKind::kLamb && problem.plain.gradient_clipping > 0 &&
           std::any_of(parameters.begin(), parameters.end(), [](const auto& parameter) { return parameter.frozen; }) &&
           std::any_of(parameters.begin(), parameters.end(), [](const contract::ParameterSpec& parameter) {
             return !parameter.frozen && parameter.numel() > kBlockElems && parameter.numel() % kBlockElems != 0;
           });
  }));
}

TEST(Gpt2Cases, ClipByUnitsWithFrozenAndUnusedParametersAndRowsThatSlicesCut) {
  constexpr int64_t kSliceElems = 32;  // slices of `optimized` begin at multiples of it
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec& model) {
    return problem.plain.adaptive_clipping.kind == contract::AdaptiveClipping::Kind::kUnit && model.unused &&
           !model.frozen.empty() && kSliceElems % model.width != 0 && model.width % kSliceElems != 0;
  }));
}

TEST(Gpt2Cases, HaveAParameterThatTwoGroupsFit) {
  EXPECT_TRUE(AnyProblem([](const Problem& problem, const contract::Gpt2Spec& model) {
    for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
      const auto fits = std::count_if(problem.plain.groups.begin(), problem.plain.groups.end(),
                                      [&](const contract::ParameterGroup& group) {
                                        return fnmatch(group.match.c_str(), parameter.name.c_str(), 0) == 0;
                                      });
      if (fits >= 2) return true;
    }
    return false;
  }));
}

TEST(Gpt2Cases, HaveUnequalCountsOfValidTokensInEveryLayout) {
  contract::TokenSource source{std::vector<int32_t>(500, 3), true};
  for (const Problem& problem : Gpt2Cases().problems) {
    const int64_t batch = problem.plain.train_batch_size;
    const contract::Batches batches = contract::MakeBatches(source, problem.model, {7, 0, 1, batch});
    const int64_t positions = problem.model.positions();
    std::set<int64_t> counts;
    for (int64_t sample = 0; sample < batch; ++sample) {
      int64_t count = 0;
      for (int64_t t = 0; t < positions; ++t)
        count += batches.loss_weights[static_cast<size_t>(sample * positions + t)];
      counts.insert(count);
    }
    EXPECT_GE(counts.size(), 3u) << problem.name;
  }
}

}  // namespace
}  // namespace plumbline::conformance
