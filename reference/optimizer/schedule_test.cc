// SPDX-License-Identifier: Apache-2.0
// Schedules against values worked out by hand from docs/semantics.md. k = s − 1 throughout.
#include "reference/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "conformance/contract/error.h"

namespace plumbline::reference {
namespace {

using contract::Cycle;
using contract::Schedule;

constexpr int64_t kFar = 1'000'000'000;

Schedule Warmup(int64_t num_steps, bool linear) { return {Schedule::Kind::kWarmup, 0, 1, num_steps, linear}; }

struct WarmupRow {
  int64_t num_steps;
  int64_t step;
  double linear;
  double logarithmic;
};

TEST(WarmupFactor, FollowsTheTableOfTheFormula) {
  const WarmupRow rows[] = {
      {4, 0, 0, 0},
      {4, 1, 0, 0},
      {4, 2, 0.25, 0.5},  // ln 2 / ln 4
      {4, 3, 0.5, std::log(3.0) / std::log(4.0)},
      {4, 4, 0.75, 1},  // ln 4 / ln 4, one step before the linear one
      {4, 5, 1, 1},
      {4, kFar, 1, 1},
      {10, 10, 0.9, 1},
      {10, 11, 1, 1},
      {2, 2, 0.5, 1},
      {2, 3, 1, 1},
  };
  for (const WarmupRow& row : rows) {
    SCOPED_TRACE(testing::Message() << "N " << row.num_steps << ", step " << row.step);
    EXPECT_NEAR(WarmupFactor(Warmup(row.num_steps, true), row.step), row.linear, 1e-15);
    EXPECT_NEAR(WarmupFactor(Warmup(row.num_steps, false), row.step), row.logarithmic, 1e-15);
  }
}

TEST(WarmupFactor, TakesFewerThanTwoStepsForTwo) {
  for (const int64_t num_steps : {0, 1}) {
    for (const bool linear : {true, false}) {
      for (int64_t step = 0; step < 5; ++step)
        EXPECT_EQ(WarmupFactor(Warmup(num_steps, linear), step), WarmupFactor(Warmup(2, linear), step));
    }
  }
}

struct DecayRow {
  int64_t num_steps;
  int64_t total;
  bool linear;
  int64_t step;
  double value;
};

TEST(WarmupDecayFactor, FollowsTheTableOfTheFormula) {
  const DecayRow rows[] = {
      {4, 8, true, 0, 0},     {4, 8, true, 1, 0},    {4, 8, true, 2, 0.25}, {4, 8, true, 3, 0.5},
      {4, 8, true, 4, 0.75},                          // k = 3, the last of the warm-up
      {4, 8, true, 5, 1},                             // k = N: (8 − 4) / (8 − 4)
      {4, 8, true, 6, 0.75},                          // (8 − 5) / 4
      {4, 8, true, 8, 0.25},                          // (8 − 7) / 4
      {4, 8, true, 9, 0},                             // k = S
      {4, 8, true, 10, 0},                            // (8 − 9) / 4 is below 0
      {4, 8, true, kFar, 0},  {4, 8, false, 2, 0.5},  // ln 2 / ln 4
      {4, 8, false, 4, 1},                            // ln 4 / ln 4
      {4, 8, false, 5, 1},                            // the decay is linear after both
      {4, 8, false, 6, 0.75}, {4, 5, true, 5, 1},     // (5 − 4) / 1
      {4, 5, true, 6, 0},                             // (5 − 5) / 1
      {4, 4, true, 4, 0.75},                          // S = N: the warm-up, and then nothing:
      {4, 4, true, 5, 0},                             // (4 − 4) / max(1, 0)
      {4, 2, true, 4, 0.75},                          // S < N: the warm-up does not end earlier,
      {4, 2, true, 5, 0},                             // (2 − 4) / max(1, −2) is below 0
      {0, 0, true, 2, 0.5},                           // N is 2 even so: k / N = 1 / 2
      {0, 0, true, 3, 0},     {0, 6, true, 2, 0.5},   // N = 0, 1 and 2 alike:
      {0, 6, true, 3, 1},                             // (6 − 2) / (6 − 2)
      {0, 6, true, 4, 0.75},                          // (6 − 3) / 4
      {1, 6, true, 2, 0.5},   {1, 6, true, 4, 0.75}, {2, 6, true, 2, 0.5},  {2, 6, true, 4, 0.75},
  };
  for (const DecayRow& row : rows) {
    Schedule schedule = Warmup(row.num_steps, row.linear);
    schedule.total_num_steps = row.total;
    EXPECT_NEAR(WarmupDecayFactor(schedule, row.step), row.value, 1e-15)
        << "N " << row.num_steps << ", S " << row.total << ", linear " << row.linear << ", step " << row.step;
  }
}

// With r = 1/4 and c = 1/8, so the warm-up makes 1/4 + 3/4 · w and the cosine 1/8 + 7/8 · (1 + cos) / 2.
TEST(WarmupCosineRatio, FollowsTheTableOfTheFormula) {
  const double root = std::sqrt(0.5);  // cos(π / 4) = −cos(3 π / 4)
  const DecayRow rows[] = {
      {4, 8, true, 0, 0},                               // not even the smallest ratio
      {4, 8, true, 1, 0.25},                            // w = 0
      {4, 8, true, 2, 0.4375},                          // 1/4 + 3/4 · 1/4
      {4, 8, true, 3, 0.625},                           // 1/4 + 3/4 · 2/4
      {4, 8, true, 4, 0.8125},                          // 1/4 + 3/4 · 3/4
      {4, 8, true, 5, 0.125 + 0.875 * (1 + root) / 2},  // k = N: cos(π · 1 / 4); it never reaches 1
      {4, 8, true, 6, 0.5625},                          // cos(π · 2 / 4) = 0: 1/8 + 7/16
      {4, 8, true, 7, 0.125 + 0.875 * (1 - root) / 2},  // cos(π · 3 / 4)
      {4, 8, true, 8, 0.125},                           // cos π
      {4, 8, true, 9, 0.125},                           // k = S; cos(π · 5 / 4) would rise again
      {4, 8, true, 10, 0.125},
      {4, 8, true, kFar, 0.125},
      {4, 8, false, 2, 0.625},  // 1/4 + 3/4 · ln 2 / ln 4
      {4, 8, false, 4, 1},      // 1/4 + 3/4 · ln 4 / ln 4
      {4, 8, false, 5, 0.125 + 0.875 * (1 + root) / 2},
      {4, 6, true, 5, 0.5625},  // cos(π · 1 / 2)
      {4, 6, true, 6, 0.125},
      {4, 5, true, 5, 0.125},  // cos(π · 1 / 1)
      {4, 4, true, 4, 0.8125},
      {4, 4, true, 5, 0.125},  // 1 / max(1, 0)
      {4, 2, true, 4, 0.8125},
      {4, 2, true, 5, 0.125},  // 1 / max(1, −2)
      {0, 0, true, 2, 0.625},  // N is 2: 1/4 + 3/4 · 1/2
      {0, 0, true, 3, 0.125},
      {0, 6, true, 2, 0.625},
      {0, 6, true, 3, 0.125 + 0.875 * (1 + root) / 2},  // cos(π · (2 − 2 + 1) / (6 − 2))
      {1, 6, true, 2, 0.625},
      {1, 6, true, 4, 0.5625},
      {2, 6, true, 2, 0.625},
      {2, 6, true, 4, 0.5625},
  };
  for (const DecayRow& row : rows) {
    Schedule schedule = Warmup(row.num_steps, row.linear);
    schedule.total_num_steps = row.total;
    schedule.warmup_min_ratio = 0.25;
    schedule.cos_min_ratio = 0.125;
    EXPECT_NEAR(WarmupCosineRatio(schedule, row.step), row.value, 1e-15)
        << "N " << row.num_steps << ", S " << row.total << ", linear " << row.linear << ", step " << row.step;
  }
}

Cycle CycleOf(int64_t first, int64_t second, int64_t first_stairs, int64_t second_stairs) {
  Cycle cycle;
  cycle.first_steps = first;
  cycle.second_steps = second;
  cycle.first_stairs = first_stairs;
  cycle.second_stairs = second_stairs;
  return cycle;
}

struct CycleRow {
  Cycle cycle;
  std::vector<double> values;  // of steps 0, 1, …
};

TEST(CycleFactor, FollowsTheTableOfTheFormula) {
  const double third = 1.0 / 3;
  const CycleRow rows[] = {
      {CycleOf(4, 2, 0, 0), {0, 0.25, 0.5, 0.75, 1, 0.5, 0, 0.25, 0.5}},  // c = 5: (6 − 5) / 2; c = 6 is 0 again
      {CycleOf(2, 5, 0, 0), {0, 0.5, 1, 0.8, 0.6, 0.4, 0.2, 0}},          // (7 − 3) / 5, …
      {CycleOf(1, 1, 0, 0), {0, 1, 0, 1}},
      {CycleOf(1, 3, 0, 0), {0, 1, 2 * third, third, 0}},
      {CycleOf(4, 4, 2, 3), {0, 0, 0.5, 0.5, 1, 2 * third, third, 0, 0}},  // floor of 0.5, 1, 1.5, 2; 2.25, 1.5, 0.75
      {CycleOf(4, 4, 0, 1), {0, 0.25, 0.5, 0.75, 1, 0, 0, 0, 0}},
      {CycleOf(4, 4, 1, 0), {0, 0, 0, 0, 1, 0.75, 0.5, 0.25, 0}},
      {CycleOf(2, 2, 3, 5), {0, third, 1, 0.4, 0}},  // more stairs than steps: floor(3 / 2) / 3, floor(5 / 2) / 5
      {CycleOf(3, 3, 3, 3), {0, third, 2 * third, 1, 2 * third, third, 0}},
  };
  for (const CycleRow& row : rows) {
    for (size_t step = 0; step < row.values.size(); ++step)
      EXPECT_NEAR(CycleFactor(row.cycle, static_cast<int64_t>(step)), row.values[step], 1e-15)
          << "F " << row.cycle.first_steps << ", G " << row.cycle.second_steps << ", stairs " << row.cycle.first_stairs
          << " and " << row.cycle.second_stairs << ", step " << step;
  }
}

// 49 · (1.0 / 49) is below 1 in fp64: from a rounded σ the first stair would be climbed a step too late.
TEST(CycleFactor, ClimbsAStairInEachStepWhereThereAreAsManyOfBoth) {
  for (const int64_t steps : {3, 49, 98, 103, 107}) {
    const Cycle cycle = CycleOf(steps, steps, steps, steps);
    for (int64_t c = 0; c <= steps; ++c) {
      const double exact = static_cast<double>(c) / static_cast<double>(steps);
      EXPECT_EQ(CycleFactor(cycle, c), exact) << steps;
      EXPECT_EQ(CycleFactor(cycle, 2 * steps - c), exact) << steps;
    }
  }
}

// n c = 2^40 (2^40 − 2) fits neither 64 bits nor, divided by F, a double. n c / F = n − 1 − 1/F, so a stair is lacking.
TEST(CycleFactor, IsExactForTheLargestCounts) {
  const int64_t n = int64_t{1} << 40;
  EXPECT_EQ(CycleFactor(CycleOf(n - 1, n, n, n), n - 2), static_cast<double>(n - 2) / static_cast<double>(n));
}

struct StepRow {
  int64_t step;
  double value;
};

// From 1 to 3 in four steps and back in two.
Cycle RateCycle(int64_t decay_steps, double decay_lr_rate) {
  Cycle cycle = CycleOf(4, 2, 0, 0);
  cycle.min_lr = 1;
  cycle.max_lr = 3;
  cycle.decay_steps = decay_steps;
  cycle.decay_lr_rate = decay_lr_rate;
  return cycle;
}

TEST(CycleRate, RisesFallsAndDecaysAfterTheCycle) {
  const StepRow rows[] = {
      {0, 1},
      {1, 1.5},  // 1 + 2 · 1 / 4
      {3, 2.5},
      {4, 3},
      {5, 2},          // 1 + 2 · 1 / 2
      {6, 1},          // k = 5, the last of the cycle
      {7, 0.8},        // 1 / (1 + 0.5 · 1 / 2): no whole intervals
      {8, 1.0 / 1.5},  // 1 / (1 + 0.5 · 2 / 2)
      {10, 0.5},       // 1 / (1 + 0.5 · 4 / 2)
      {kFar, 1 / (1 + 0.25 * (kFar - 6))},
  };
  for (const StepRow& row : rows) EXPECT_NEAR(CycleRate(RateCycle(2, 0.5), row.step), row.value, 1e-15) << row.step;
}

TEST(CycleRate, WithoutDecayStaysAtTheLeastAfterTheCycle) {
  for (const int64_t step : {6, 7, 8, 100}) {
    EXPECT_EQ(CycleRate(RateCycle(0, 0.5), step), 1) << step;
    EXPECT_EQ(CycleRate(RateCycle(2, 0), step), 1) << step;
  }
  EXPECT_EQ(CycleRate(RateCycle(0, 0.5), 5), 2);
}

TEST(CycleRate, ClimbsStairs) {
  Cycle cycle = RateCycle(0, 0);
  cycle.first_stairs = 2;
  const double rates[] = {1, 1, 2, 2, 3, 2, 1};
  for (int64_t step = 0; step < 7; ++step) EXPECT_EQ(CycleRate(cycle, step), rates[step]) << step;
}

Cycle MomentumCycle() {
  Cycle cycle = CycleOf(4, 2, 0, 0);
  cycle.min_momentum = 0.5;
  cycle.max_momentum = 0.875;
  return cycle;
}

TEST(CycleMomentum, MovesAgainstTheRateAfterStepZero) {
  const StepRow rows[] = {
      {0, 0.5},      // though σ is 0
      {1, 0.78125},  // 0.875 − 0.375 · 1 / 4
      {2, 0.6875},   // 0.875 − 0.375 · 2 / 4
      {4, 0.5},      // σ = 1
      {5, 0.6875},   // 0.875 − 0.375 · 1 / 2
      {6, 0.875},    // σ = 0
      {7, 0.875},   {kFar, 0.875},
  };
  for (const StepRow& row : rows) EXPECT_EQ(CycleMomentum(MomentumCycle(), row.step), row.value) << row.step;
}

TEST(CycleMomentum, ClimbsStairs) {
  Cycle cycle = MomentumCycle();
  cycle.first_stairs = 2;
  EXPECT_EQ(CycleMomentum(cycle, 1), 0.875);
  EXPECT_EQ(CycleMomentum(cycle, 3), 0.6875);
}

Schedule ScheduleOf(Schedule::Kind kind) {
  Schedule schedule;
  schedule.kind = kind;
  schedule.cycle = MomentumCycle();
  return schedule;
}

TEST(ScheduledBetas, AreThoseOfOneCycle) {
  const StepRow rows[] = {{0, 0.5}, {1, 0.78125}, {6, 0.875}, {7, 0.875}};
  for (const StepRow& row : rows)
    EXPECT_EQ(ScheduledBetas(ScheduleOf(Schedule::Kind::kOneCycle), row.step), (contract::BetaPair{row.value, 0.99}))
        << row.step;
}

TEST(ScheduledBetas, AreNoneWhereNothingMovesThem) {
  for (const Schedule::Kind kind : {Schedule::Kind::kConstant, Schedule::Kind::kWarmup, Schedule::Kind::kWarmupDecay,
                                    Schedule::Kind::kWarmupCosine, Schedule::Kind::kOneCycle}) {
    Schedule schedule = ScheduleOf(kind);
    if (kind == Schedule::Kind::kOneCycle) schedule.cycle.moves_momentum = false;
    for (const int64_t step : {0, 1, 7})
      EXPECT_EQ(ScheduledBetas(schedule, step), std::nullopt) << static_cast<int>(kind) << ", step " << step;
  }
}

TEST(ScheduledBetas, RejectAScheduleThatIsNotKnown) {
  try {
    ScheduledBetas(ScheduleOf(static_cast<Schedule::Kind>(5)), 0);
    FAIL() << "gave betas";
  } catch (const contract::Error& error) {
    EXPECT_EQ(error.code(), contract::ErrorCode::kUnsupported) << error.what();
  }
}

}  // namespace
}  // namespace plumbline::reference
