// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "conformance/cases/gpt2_cases.h"

namespace plumbline::conformance {
namespace {

using contract::DType;

RealStart Start() {
  RealStart start;
  start.num_updates = 3;
  start.state = {{std::vector<float>(1001, 1.5f), {1, 2}, {3}}, {{}, {}, {}}, {{-0.75f, 0.0f}, {}, {}}};
  return start;
}

TEST(Disturbed, MovesEachMasterWeightByAtMostHalfAnUlpAndMostOfThem) {
  for (const auto& [storage, half_ulp] : {std::pair(DType::kF32, 0x1p-24), std::pair(DType::kBF16, 0x1p-9)}) {
    const RealStart start = Start();
    const RealStart disturbed = Disturbed(start, storage, 1, 0);
    const std::vector<float>& values = disturbed.state[0].master;
    ASSERT_EQ(values.size(), 1001u);
    std::set<float> distinct(values.begin(), values.end());
    double mean = 0;
    for (float value : values) {
      // The product is rounded to fp32 again.
      EXPECT_LE(std::abs(value / 1.5 - 1), half_ulp + 0x1p-24);
      mean += (value / 1.5 - 1) / 1001;
    }
    if (storage == DType::kBF16) {
      EXPECT_GT(distinct.size(), 960u);  // of 49152 floats in reach; 991 are expected
    } else {
      EXPECT_EQ(distinct.size(), 3u);  // 1.5 and its neighbours
    }
    EXPECT_LT(std::abs(mean), 6 * half_ulp / std::sqrt(3.0 * 1001));
  }
}

TEST(Disturbed, KeepsMomentsFrozenWeightsZerosAndTheNumberOfUpdates) {
  const RealStart disturbed = Disturbed(Start(), DType::kBF16, 1, 0);
  EXPECT_EQ(disturbed.num_updates, 3);
  EXPECT_EQ(disturbed.state[0].moment, (std::vector<float>{1, 2}));
  EXPECT_EQ(disturbed.state[0].second_moment, (std::vector<float>{3}));
  EXPECT_TRUE(disturbed.state[1].master.empty());
  EXPECT_LT(disturbed.state[2].master[0], -0.74f);
  EXPECT_EQ(disturbed.state[2].master[1], 0.0f);
}

TEST(Disturbed, IsTheSameForOneNumberAndSeedAndAnotherForOthers) {
  const auto first = [](uint64_t seed, int number) {
    return Disturbed(Start(), DType::kBF16, seed, number).state[0].master;
  };
  EXPECT_EQ(first(1, 0), first(1, 0));
  EXPECT_NE(first(1, 0), first(1, 1));
  EXPECT_NE(first(1, 0), first(2, 0));
  EXPECT_NE(first(1, 0), first(1 + (1ull << 32), 0));
}

TEST(DriftTask, RunsWholeTrajectoriesInThePlainLayoutEachFromOtherWeights) {
  const Problem problem = Gpt2Cases().problems.front();
  const contract::EngineDescription plain;
  RealStart start = Start();
  const DriftTask task(problem, PlanOptions{}, DType::kBF16, start, plain);
  const std::vector<TaskRun> runs = task.Runs();
  ASSERT_EQ(runs.size(), 10u);
  EXPECT_EQ(DriftTask(problem, PlanOptions{}, DType::kF32, start, plain).Runs().size(), 4u);
  std::set<std::vector<float>> beginnings;
  std::set<std::string> ids;
  for (const TaskRun& run : runs) {
    EXPECT_EQ(run.spec.first_step, 0);
    EXPECT_EQ(run.spec.steps, problem.steps);
    EXPECT_EQ(run.spec.config.storage, DType::kBF16);
    ids.insert(run.spec.id);
    EXPECT_EQ(run.spec.config.accumulation_steps, 1);
    beginnings.insert(run.start->state[0].master);
  }
  EXPECT_EQ(beginnings.size(), runs.size());
  EXPECT_EQ(ids.size(), runs.size());
}

}  // namespace
}  // namespace plumbline::conformance
