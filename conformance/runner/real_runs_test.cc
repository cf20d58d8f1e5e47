// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/real_runs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/cases/gpt2_cases.h"
#include "conformance/runner/resumed_run.h"

namespace plumbline::conformance {
namespace {

// Made once: it takes a while.
const CaseList& List() {
  static const CaseList list = Gpt2Cases();
  return list;
}

contract::Case Base(const contract::RunConfig& config) {
  contract::Case spec;
  spec.id = "gpt2/x";
  spec.model = List().problems.front().model;
  spec.config = config;
  spec.steps = 20;
  return spec;
}

TEST(StepCase, IsOneDumpedStepOfTheSameLayout) {
  for (const CaseSpec& entry : List().cases) {
    for (int64_t step : kInjectedSteps) {
      const contract::Case spec = StepCase(Base(entry.config), step);
      EXPECT_EQ(spec.first_step, step);
      EXPECT_EQ(spec.steps, 1);
      EXPECT_EQ(spec.dump_steps, std::vector<int64_t>{step});
      EXPECT_EQ(spec.config, entry.config);
    }
  }
}

TEST(InjectedSteps, AreTheFirstThreeAndALateOneOfTheTrajectory) {
  const std::vector<int64_t> steps(std::begin(kInjectedSteps), std::end(kInjectedSteps));
  EXPECT_EQ(std::vector<int64_t>(steps.begin(), steps.begin() + 3), (std::vector<int64_t>{0, 1, 2}));
  for (const Problem& problem : List().problems) {
    EXPECT_LT(steps.back(), problem.steps);
    // Late: after the warm-up, or the cycle.
    const contract::Schedule& schedule = problem.plain.schedule;
    if (schedule.kind == contract::Schedule::Kind::kConstant) continue;
    const bool is_cycle = schedule.kind == contract::Schedule::Kind::kOneCycle;
    EXPECT_GT(steps.back(),
              is_cycle ? schedule.cycle.first_steps + schedule.cycle.second_steps : schedule.warmup_num_steps)
        << problem.name;
  }
}

TEST(SkippedCase, GoesOnForOneStepWhereItIsFollowed) {
  const contract::Case base = Base(List().problems.front().plain);
  contract::Case followed = SkippedCase(base, "nan", true);
  EXPECT_EQ(followed.first_step, kSkippedStep);
  EXPECT_EQ(followed.steps, 2);
  EXPECT_EQ(followed.dump_steps, (std::vector<int64_t>{kSkippedStep, kSkippedStep + 1}));
  EXPECT_EQ(followed.config, base.config);
  EXPECT_TRUE(followed.save_steps.empty());
}

TEST(ResumedSkippedCase, MakesTheStepAfterTheOneThatWasSaved) {
  const contract::Case skipped = SkippedCase(Base(List().problems.front().plain), "nan", true, /*save=*/true);
  EXPECT_EQ(skipped.save_steps, std::vector<int64_t>{kSkippedStep});
  const contract::Case resumed = ResumedSkippedCase(skipped);
  EXPECT_TRUE(resumed.resume);
  EXPECT_TRUE(resumed.save_steps.empty());
  EXPECT_EQ(resumed.dump_steps, std::vector<int64_t>{kSkippedStep + 1});
  const contract::Case after = AfterStep(resumed, kSkippedStep);
  EXPECT_EQ(after.first_step, kSkippedStep + 1);
  EXPECT_EQ(after.steps, 1);
}

TEST(SkippedAndUnroundedCases, AreSingleStepsWithIdsOfTheirOwn) {
  const contract::Case base = Base(List().problems.front().plain);
  for (const contract::Case& spec :
       {SkippedCase(base, "inf", false), SkippedCase(base, "nan", false), UnroundedCase(base)}) {
    EXPECT_EQ(spec.steps, 1);
    EXPECT_EQ(spec.dump_steps, std::vector<int64_t>{spec.first_step});
    EXPECT_NE(spec.id, StepCase(base, spec.first_step).id);
  }
  EXPECT_EQ(std::count(std::begin(kInjectedSteps), std::end(kInjectedSteps), kSkippedStep), 1);
}

TEST(SavedAndResumedCases, MakeUpTheTrajectoryHoweverShort) {
  for (int64_t steps : {1, 2, 3, 7, 19, 20}) {
    contract::Case base = Base(List().problems.front().plain);
    base.steps = steps;
    const contract::Case saving = SavingCase(base, true);
    EXPECT_EQ(saving.save_steps, std::vector<int64_t>{saving.steps - 1});
    EXPECT_TRUE(SavingCase(base, false).save_steps.empty());
    EXPECT_EQ(RelatedCase(base).steps, saving.steps);
    EXPECT_GE(saving.steps, 1);
    EXPECT_EQ(HasResumedHalf(base), steps > 1);
    if (!HasResumedHalf(base)) continue;
    const contract::Case after = AfterStep(base, saving.steps - 1);
    EXPECT_EQ(after.first_step, saving.steps);
    EXPECT_GE(after.steps, 1);
    EXPECT_EQ(saving.steps + after.steps, base.steps);
  }
}

TEST(InjectedSteps, AreThoseThatTheTrajectoryHas) {
  EXPECT_EQ(InjectedSteps(1), std::vector<int64_t>{0});
  EXPECT_EQ(InjectedSteps(2), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(InjectedSteps(4), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(InjectedSteps(5), (std::vector<int64_t>{0, 1, 2, 4}));
  EXPECT_EQ(InjectedSteps(20), std::vector<int64_t>(std::begin(kInjectedSteps), std::end(kInjectedSteps)));
  contract::Case base = Base(List().problems.front().plain);
  for (int64_t steps : {1, 2, 5, 20}) {
    base.steps = steps;
    EXPECT_EQ(UnroundedCase(base).first_step, InjectedSteps(steps).back());
  }
}

TEST(RelatedLayout, KeepsWhatDecidesTheOrderOfSums) {
  for (const CaseSpec& entry : List().cases) {
    const contract::RunConfig related = RelatedLayout(entry.config);
    EXPECT_EQ(related.data_degree, entry.config.data_degree);
    EXPECT_EQ(related.accumulation_steps, entry.config.accumulation_steps);
    EXPECT_EQ(related.micro_batch_size, entry.config.micro_batch_size);
    EXPECT_EQ(related.storage, entry.config.storage);
    EXPECT_EQ(RelatedLayout(related), related) << "it is its own simplest layout";
    contract::RunConfig hinted = entry.config;
    hinted.hints = {{"zero_optimization.sub_group_size", "7"}};
    EXPECT_EQ(RelatedLayout(hinted), related) << "hints must not change a bit";
    const bool each_reduced = entry.config.accumulation_steps > 1 && entry.config.zero_stage >= 2;
    EXPECT_EQ(related.zero_stage, each_reduced ? 2 : 0) << entry.id;
  }
}

TEST(RelatedLayout, DiffersFromMostCases) {
  int64_t different = 0;
  const CaseList& list = List();
  for (const CaseSpec& entry : list.cases) different += !(RelatedLayout(entry.config) == entry.config);
  EXPECT_GE(different, static_cast<int64_t>(list.cases.size()) - 1);
}

TEST(PlainLayouts, AreOneRankAndDifferOnlyInMicroBatches) {
  for (const Problem& problem : List().problems) {
    for (contract::DType storage : {contract::DType::kF32, contract::DType::kBF16}) {
      contract::RunConfig plain = PlainLayout(problem, storage);
      contract::RunConfig other = OtherPlainLayout(problem, storage);
      EXPECT_EQ(plain.world_size(), 1);
      EXPECT_EQ(other.world_size(), 1);
      EXPECT_GT(other.accumulation_steps, 1);
      EXPECT_EQ(other.micro_batch_size * other.accumulation_steps, problem.plain.train_batch_size);
      other.accumulation_steps = plain.accumulation_steps;
      other.micro_batch_size = plain.micro_batch_size;
      EXPECT_EQ(plain, other);
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
