// SPDX-License-Identifier: Apache-2.0
// CheckLosses and CheckTrajectory on made-up losses.
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/oracle/real_check.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using reports::CheckOutcome;

// Steps of which only the loss is there.
std::vector<StepSight> Truth() {
  std::vector<StepSight> sights;
  for (int64_t step : kExampleRealSteps) {
    StepSight& sight = sights.emplace_back();
    sight.step = step;
    sight.loss = 3 - 0.1 * static_cast<double>(step);
    sight.tokens = 23;
  }
  return sights;
}

std::vector<StepSight> Engine(DType storage, uint64_t seed) {
  std::vector<StepSight> sights = Truth();
  ExampleNumbers numbers(seed);
  for (StepSight& sight : sights) {
    sight.storage = storage;
    sight.loss *= 1 + (storage == DType::kBF16 ? 3e-5 : 5e-8) * numbers.Normal();
  }
  return sights;
}

Yardstick ExampleYardstick(DType storage, uint64_t seed) {
  return {Truth(), Engine(storage, 2 * seed), Engine(storage, storage == DType::kBF16 ? 2 * seed : 2 * seed + 1)};
}

TEST(CheckLosses, GivesNoFalseAlarmInTwoThousandRepetitions) {
  for (DType storage : {DType::kF32, DType::kBF16}) {
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      const Yardstick yardstick = ExampleYardstick(storage, seed);
      const RealResult result = CheckLosses(yardstick, Engine(storage, 700'000 + seed));
      ASSERT_EQ(result.check.outcome, CheckOutcome::kPass) << seed << ": " << result.check.detail;
      ASSERT_EQ(result.check.compared, 8);
    }
  }
}

TEST(CheckLosses, FindsOneWrongLossAndNamesTheStep) {
  for (size_t step = 0; step < 4; ++step) {
    for (double factor : {0.5, 1.01, 2.0, -1.0, 0.0, -0.0, kSubnormal, kInf, -kInf, kNaN, kOtherNaN}) {
      const Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
      std::vector<StepSight> candidate = yardstick.plain;
      candidate[step].loss *= factor;
      const RealResult result = CheckLosses(yardstick, candidate);
      ASSERT_TRUE(result.divergence) << factor;
      EXPECT_EQ(result.check.outcome, CheckOutcome::kFail);
      EXPECT_EQ(result.divergence->step, kExampleRealSteps[step]);
      EXPECT_EQ(result.divergence->quantity, "loss");
    }
  }
}

TEST(CheckLosses, FindsAnotherTokenCount) {
  const Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
  std::vector<StepSight> candidate = yardstick.plain;
  candidate[2].tokens = 22;
  EXPECT_NE(CheckLosses(yardstick, candidate).check.detail.find("over 22 tokens"), std::string::npos);
}

TEST(CheckLosses, FailsOnOtherSteps) {
  const Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
  std::vector<StepSight> candidate = yardstick.plain;
  ++candidate[3].step;
  EXPECT_NE(CheckLosses(yardstick, candidate).check.detail.find("compared with step 9"), std::string::npos);
}

TEST(CheckLosses, IsVacuousWhereTheTruthOrAPlainEngineIsNotFiniteOrTheTruthIsZero) {
  for (auto line : {&Yardstick::truth, &Yardstick::plain, &Yardstick::other_plain}) {
    for (double loss : kNotFinite) {
      Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
      (yardstick.*line)[2].loss = loss;
      // Neither an engine that is right otherwise, nor one that agrees.
      EXPECT_EQ(CheckLosses(yardstick, Truth()).check.outcome, CheckOutcome::kVacuous) << loss;
      EXPECT_EQ(CheckLosses(yardstick, yardstick.*line).check.outcome, CheckOutcome::kVacuous) << loss;
      const std::string step = "step " + std::to_string(yardstick.truth[2].step) + ": loss of ";
      EXPECT_EQ(CheckLosses(yardstick, Truth()).check.detail.find(step), 0u) << "which of the reasons it is";
    }
  }
  for (double zero : {0.0, -0.0}) {
    Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
    yardstick.truth[2].loss = zero;
    EXPECT_EQ(CheckLosses(yardstick, yardstick.truth).check.outcome, CheckOutcome::kVacuous);
  }
}

TEST(CheckLosses, IsVacuousWithoutAScaleAndFailsOnMissingSteps) {
  Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
  EXPECT_EQ(CheckLosses(Yardstick{}, {}).check.outcome, CheckOutcome::kVacuous);
  std::vector<StepSight> candidate = yardstick.plain;
  candidate.pop_back();
  EXPECT_EQ(CheckLosses(yardstick, candidate).check.outcome, CheckOutcome::kFail);
  candidate = yardstick.truth;
  yardstick.plain[1].loss = 2 * yardstick.truth[1].loss;
  EXPECT_EQ(CheckLosses(yardstick, candidate).check.outcome, CheckOutcome::kVacuous);
}

constexpr int64_t kTokens = 200;

// Losses that fall, with a distance that grows. A run draws one number, as the distances of real runs keep their sign:
// the case in which a run shows least.
std::vector<double> ExampleTrajectory(double size, uint64_t seed) {
  std::vector<double> losses;
  const double drift = ExampleNumbers(seed).Normal();
  for (int step = 0; step < 20; ++step) {
    losses.push_back((4 * std::exp(-0.05 * step) + 0.1 * std::sin(step)) * (1 + size * std::exp(0.15 * step) * drift));
  }
  return losses;
}

std::vector<std::vector<double>> ExampleDrift(double size, uint64_t seed) {
  std::vector<std::vector<double>> drifted;
  for (uint64_t run = 0; run < 10; ++run) drifted.push_back(ExampleTrajectory(size, 10 * seed + run));
  return drifted;
}

TEST(CheckTrajectory, GivesNoFalseAlarmInTwoThousandRepetitions) {
  const std::vector<double> truth = ExampleTrajectory(0, 1);
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    for (double size : {1e-7, 1e-4}) {
      const RealResult result =
          CheckTrajectory(truth, kTokens, ExampleDrift(size, seed), ExampleTrajectory(2 * size, 1'000'000 + seed));
      ASSERT_EQ(result.check.outcome, CheckOutcome::kPass) << seed << ": " << result.check.detail;
      ASSERT_EQ(result.check.compared, 21);
    }
  }
}

// Two plain runs that stay near the truth by luck, as two that share most roundings did, set no limit for the others.
TEST(CheckTrajectory, TakesItsLimitFromAllRunsAndNotFromTwoThatWereLucky) {
  const std::vector<double> truth = ExampleTrajectory(0, 1);
  std::vector<std::vector<double>> drifted = ExampleDrift(1e-4, 7);
  drifted[0] = drifted[1] = truth;
  const std::vector<double> candidate = ExampleTrajectory(2e-4, 7'000);
  EXPECT_EQ(CheckTrajectory(truth, kTokens, drifted, candidate).check.outcome, CheckOutcome::kPass);
  drifted.resize(2);
  EXPECT_EQ(CheckTrajectory(truth, kTokens, drifted, candidate).check.outcome, CheckOutcome::kFail);
}

// With one number a run the limit is Student's: t(1e-6) of ten degrees of freedom is 10.516 (two-sided 1e-6), and S 2.
TEST(CheckTrajectory, AllowsStudentsQuantileTimesTheSpreadTimesThePooledDrift) {
  const std::vector<double> truth(20, 1.0);
  std::vector<double> falling = truth;
  falling.back() = 0.5;
  const auto away = [&](double distance) {
    std::vector<double> losses = falling;
    for (double& loss : losses) loss *= 1 + distance;
    return losses;
  };
  const std::vector<std::vector<double>> drifted(10, away(1e-3));
  EXPECT_EQ(CheckTrajectory(falling, kTokens, drifted, away(0.0205)).check.outcome, CheckOutcome::kPass);
  EXPECT_EQ(CheckTrajectory(falling, kTokens, drifted, away(0.0215)).check.outcome, CheckOutcome::kFail);
}

// Plain runs that happen to round the loss alike set no limit below what the loss's own sum may lose.
TEST(CheckTrajectory, AllowsForTheOrderOfTheLosssOwnSum) {
  const std::vector<double> truth = ExampleTrajectory(0, 1);
  const std::vector<std::vector<double>> drifted(10, truth);
  std::vector<double> candidate = truth;
  for (double& loss : candidate) loss *= 1 + 1e-5;
  EXPECT_EQ(CheckTrajectory(truth, kTokens, drifted, candidate).check.outcome, CheckOutcome::kPass);
  EXPECT_EQ(CheckTrajectory(truth, kTokens / 2, drifted, candidate).check.outcome, CheckOutcome::kFail);
}

TEST(CheckTrajectory, FindsWhatDoesNotLearnAndWhatLearnsAtAnotherRate) {
  const std::vector<double> truth = ExampleTrajectory(0, 1);
  const std::vector<std::vector<double>> drifted = ExampleDrift(1e-6, 2);
  const auto check = [&](const std::vector<double>& candidate) {
    return CheckTrajectory(truth, kTokens, drifted, candidate);
  };
  std::vector<double> flat(truth.size(), truth.front());
  EXPECT_NE(check(flat).check.detail.find("in the end"), std::string::npos);
  std::vector<double> slower = truth;
  for (size_t i = 0; i < slower.size(); ++i) slower[i] += 1e-3 * static_cast<double>(i);
  EXPECT_EQ(check(slower).check.outcome, CheckOutcome::kFail);
  EXPECT_EQ(check(slower).divergence->quantity, "loss");
  EXPECT_EQ(check(slower).divergence->step, 19);
  for (double odd : {kNaN, kOtherNaN, kInf, -kInf, 0.0, -0.0, kSubnormal, -truth[7]}) {
    std::vector<double> broken = truth;
    broken[7] = odd;
    ASSERT_TRUE(check(broken).divergence) << odd;
    EXPECT_EQ(check(broken).divergence->step, 7) << odd;
  }
  std::vector<double> shorter = truth;
  shorter.pop_back();
  EXPECT_EQ(check(shorter).check.outcome, CheckOutcome::kFail);
  EXPECT_EQ(check({}).check.outcome, CheckOutcome::kFail);
}

// Of the reasons the one that holds.
TEST(CheckTrajectory, SaysWhyItIsVacuous) {
  const std::vector<double> truth = ExampleTrajectory(0, 1);
  const std::vector<std::vector<double>> drifted = ExampleDrift(1e-6, 2);
  const auto why = [](const std::vector<double>& truth_losses, const std::vector<std::vector<double>>& runs) {
    return CheckTrajectory(truth_losses, kTokens, runs, truth_losses).check.detail;
  };
  EXPECT_EQ(why({1}, drifted), "the truth has fewer than two steps");
  EXPECT_EQ(why(truth, {truth}), "there are fewer than two disturbed plain runs");
  EXPECT_EQ(why({4, 5}, {{4, 5}, {4, 5}}),
            "the truth does not learn: its loss is 4 in the first step and 5 in the last");
  EXPECT_EQ(why({4, 0, 3}, {{4, 1, 3}, {4, 1, 3}}), "step 1: loss of the truth is 0, and distances are relative to it");
  EXPECT_EQ(why({4, kNaN, 3}, {{4, 1, 3}, {4, 1, 3}}), "step 1: loss of the truth is not finite");
  EXPECT_EQ(why({4, 3}, {{4, 3}, {4, kInf}}), "step 1: loss of disturbed plain run 1 is not finite");
  EXPECT_EQ(why({4, 3}, {{4, 3}, {4}}), "disturbed plain run 1 has 1 steps, the truth 2");
}

TEST(CheckTrajectory, IsVacuousWhereTheTruthLearnsNothingOrThePlainRunsScatterMore) {
  const std::vector<double> truth = ExampleTrajectory(0, 1);
  const auto check = [&](const std::vector<double>& truth_losses, const std::vector<std::vector<double>>& drifted) {
    return CheckTrajectory(truth_losses, kTokens, drifted, truth_losses).check.outcome;
  };
  const std::vector<double> rising(truth.rbegin(), truth.rend());
  EXPECT_EQ(check(rising, std::vector(10, rising)), CheckOutcome::kVacuous);
  EXPECT_EQ(check({}, {}), CheckOutcome::kVacuous);
  EXPECT_EQ(check(truth, {}), CheckOutcome::kVacuous);
  EXPECT_EQ(check(truth, {truth}), CheckOutcome::kVacuous);
  EXPECT_EQ(check(truth, ExampleDrift(0.1, 2)), CheckOutcome::kVacuous);
  for (double odd : kNotFinite) {
    std::vector<std::vector<double>> broken = ExampleDrift(1e-6, 2);
    broken[3][5] = odd;
    EXPECT_EQ(check(truth, broken), CheckOutcome::kVacuous) << odd;
  }
  // A distance is relative to the truth's loss.
  for (double odd : {kNaN, kInf, -kInf, 0.0, -0.0}) {
    std::vector<double> broken = truth;
    broken[5] = odd;
    EXPECT_EQ(check(broken, ExampleDrift(1e-6, 2)), CheckOutcome::kVacuous) << odd;
  }
  std::vector<std::vector<double>> broken = ExampleDrift(1e-6, 2);
  broken[3].pop_back();
  EXPECT_EQ(check(truth, broken), CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
