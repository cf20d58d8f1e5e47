// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/unrelated_steps.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/cases/bias_cases.h"
#include "conformance/contract/digest.h"
#include "conformance/oracle/storage_rounding.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

contract::Case Base() {
  const Problem problem = BiasProblem();
  contract::Case base;
  base.id = "base";
  base.model = problem.model;
  base.config = problem.plain;
  base.seed = contract::Mix(3);
  return base;
}

TEST(UnrelatedStep, BeginsAtWeightsAndBatchesOfASeedOfItsOwn) {
  std::set<uint64_t> seeds;
  std::set<float> weights;
  std::set<std::string> ids;
  for (int64_t number = 0; number < 32; ++number) {
    const TaskRun run = UnrelatedStep(Base(), number, DType::kF32);
    seeds.insert(run.spec.seed);
    ids.insert(run.spec.id);
    weights.insert(run.start->state.front().master.front());
    EXPECT_EQ(run.spec.steps, 1);
    EXPECT_EQ(run.spec.dump_steps, std::vector<int64_t>{0});
    EXPECT_EQ(run.start->num_updates, 0);
  }
  EXPECT_EQ(seeds.size(), 32u);
  EXPECT_EQ(ids.size(), 32u);
  EXPECT_EQ(weights.size(), 32u);
}

TEST(UnrelatedStep, IsTheSameForEveryEngineAndHasWeightsThatTheStorageHolds) {
  contract::Case layout = Base();
  layout.id = "another";
  layout.config.storage = DType::kBF16;
  layout.config.data_degree = 3;
  const TaskRun truth = UnrelatedStep(Base(), 5, DType::kBF16);
  const TaskRun seen = UnrelatedStep(layout, 5, DType::kBF16);
  EXPECT_EQ(truth.spec.seed, seen.spec.seed);
  int64_t rounded = 0;
  const TaskRun exact = UnrelatedStep(Base(), 5, DType::kF32);
  for (size_t i = 0; i < truth.start->state.size(); ++i) {
    EXPECT_EQ(truth.start->state[i].master, seen.start->state[i].master) << i;
    for (size_t k = 0; k < truth.start->state[i].master.size(); ++k) {
      const float value = truth.start->state[i].master[k];
      EXPECT_EQ(RoundToStorage(value, DType::kBF16), value);
      rounded += exact.start->state[i].master[k] != value;
    }
  }
  EXPECT_GT(rounded, 10'000);
}

TEST(UnrelatedStepsTask, KeepsTheFirstErrorAndHasNoSightThen) {
  UnrelatedStepsTask task(Base(), 4, 3, DType::kBF16);
  ASSERT_EQ(task.Runs().size(), 3u);
  EXPECT_EQ(task.Runs().front().spec.id, "base/unrelated4");
  CaseOutcome outcome;
  outcome.kind = CaseOutcome::Kind::kCrashed;
  outcome.message = "signal 6";
  task.Take(1, "nowhere", outcome);
  task.Take(2, "nowhere", CaseOutcome{});
  EXPECT_NE(task.error().find("base/unrelated5"), std::string::npos) << task.error();
}

}  // namespace
}  // namespace plumbline::conformance
