// SPDX-License-Identifier: Apache-2.0
// The guard on made-up runs that pass: it plants, everything is noticed, and what was seen is as it was. A comparison
// that compares nothing is not let through.
#include "conformance/oracle/guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/oracle/testing/example_run.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/example_update.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::TensorKind;
using reports::CheckOutcome;

void ExpectAllNoticed(const Guard& guard, int64_t planted, const std::string& comparisons) {
  const reports::CheckRecord check = guard.Check();
  EXPECT_EQ(check.outcome, CheckOutcome::kPass) << check.detail;
  EXPECT_EQ(check.compared, planted);
  EXPECT_EQ(check.detail, "planted changes noticed by " + comparisons);
}

TEST(Guard, IsVacuousWhereNothingWasPlantedOrAComparisonNoticesNothing) {
  Guard guard;
  EXPECT_EQ(guard.Check().outcome, CheckOutcome::kVacuous);
  guard.Demand("exact", "one element", CheckOutcome::kFail);
  EXPECT_EQ(guard.Check().outcome, CheckOutcome::kPass);
  for (CheckOutcome outcome : {CheckOutcome::kPass, CheckOutcome::kVacuous, CheckOutcome::kNotApplicable}) {
    Guard blind = guard;
    blind.Demand("ledger", "one byte", outcome);
    blind.Demand("memory", "one byte", outcome);
    EXPECT_EQ(blind.Check().outcome, CheckOutcome::kVacuous);
    EXPECT_EQ(blind.Check().detail, "ledger does not notice one byte");
  }
}

TEST(GuardTraces, PlantsInTheWholeBetweenRanksAndInTheBooks) {
  for (int64_t world : {2, 3, 5}) {
    for (int64_t stage : {0, 1}) {
      Guard guard;
      GuardTraces(ExampleCase(world, stage), ExampleTraces(world, stage), guard);
      ExpectAllNoticed(guard, 9, "trace, replicas, collectives, ledger, memory");
    }
  }
}

TEST(GuardTraces, LeavesOutOtherRanksWhereThereIsOne) {
  Guard guard;
  GuardTraces(ExampleCase(1), ExampleTraces(1, 0), guard);
  ExpectAllNoticed(guard, 4, "trace, ledger, memory");
  Guard none;
  GuardTraces(ExampleCase(1), {}, none);
  EXPECT_EQ(none.Check().outcome, CheckOutcome::kVacuous);
}

// An engine that claims neither books nor a sequence of collectives, as one without the feature `ledger`.
TEST(GuardTraces, PlantsNothingIntoBooksThatAreNotKept) {
  auto traces = ExampleTraces(2, 1);
  for (auto& trace : traces) {
    for (auto& step : trace.steps) {
      step.comm.reset();
      step.comm_sequence = 0;
      step.memory_peak_bytes.clear();
    }
  }
  Guard guard;
  GuardTraces(ExampleCase(2, 1), traces, guard);
  ExpectAllNoticed(guard, 4, "trace, replicas");
}

TEST(GuardExact, IsNoticedAndVacuousWhereTheRunHasNoSteps) {
  const RunDigest run = MergeTraces(ExampleCase(2), ExampleTraces(2, 0)).run;
  Guard guard;
  GuardExact(ExampleCase(2).model, run, run, guard);
  ExpectAllNoticed(guard, 4, "exact");
  Guard relation;
  GuardRelation(ExampleCase(2).model, run, run, relation);
  ExpectAllNoticed(relation, 4, "relation");
  Guard none;
  GuardExact(ExampleCase(2).model, {}, {}, none);
  EXPECT_EQ(none.Check().outcome, CheckOutcome::kVacuous);
}

TEST(GuardSteps, IsNoticedInBothPrecisions) {
  for (DType storage : {DType::kF32, DType::kBF16}) {
    const std::vector<StepSight> truth = ExampleTruth(3);
    const Yardstick yardstick{truth, ExampleEngine(truth, storage, 1), ExampleEngine(truth, storage, 2)};
    const std::vector<StepSight> seen = ExampleEngine(truth, storage, 4);
    Guard guard;
    GuardSteps(ExampleGpt2(), yardstick, seen, guard);
    ExpectAllNoticed(guard, 5, "gradient, loss");
  }
}

// A truth so noisy that a sign does not show: the guard says so.
TEST(GuardSteps, SaysThatAnElementWouldNotShow) {
  const std::vector<StepSight> truth = ExampleTruth(3);
  std::vector<StepSight> noise = ExampleEngine(truth, DType::kBF16, 1);
  for (StepSight& sight : noise) {
    for (auto& tensor : sight.of(contract::TensorKind::kGradient)) {
      for (double& value : tensor) value *= -3;
    }
  }
  Guard guard;
  GuardSteps(ExampleGpt2(), {truth, noise, noise}, truth, guard);
  EXPECT_EQ(guard.Check().outcome, CheckOutcome::kVacuous);
  EXPECT_EQ(guard.Check().detail, "gradient does not notice one element's sign");
}

// The vectors of a norm, the first two of one size, may be small and noise in bf16; swapped names must show elsewhere.
TEST(GuardSteps, SwapsTensorsThatAreMoreThanNoise) {
  constexpr size_t kNormWeight = 2;
  std::vector<StepSight> truth = ExampleTruth(3);
  const auto scale_vectors = [](std::vector<StepSight>& sights, double factor) {
    for (StepSight& sight : sights) {
      auto& gradients = sight.of(contract::TensorKind::kGradient);
      for (auto& tensor : gradients) {
        if (tensor.size() != gradients[kNormWeight].size()) continue;
        for (double& value : tensor) value *= factor;
      }
    }
  };
  scale_vectors(truth, 1e-3);
  std::vector<StepSight> noise = ExampleEngine(truth, DType::kBF16, 1);
  scale_vectors(noise, -3);
  std::vector<StepSight> seen = truth;
  for (StepSight& sight : seen) sight.storage = DType::kBF16;
  Guard guard;
  GuardSteps(ExampleGpt2(), {truth, noise, noise}, seen, guard);
  EXPECT_EQ(guard.Check().detail, "planted changes noticed by gradient, loss");
}

// Steps of a model whose embedding is large enough to be looked at.
std::vector<StepSight> LargeSteps(const contract::ModelSpec& model, double error) {
  std::vector<StepSight> sights(16);
  for (size_t s = 0; s < sights.size(); ++s) {
    sights[s].storage = DType::kBF16;
    ExampleNumbers numbers(s), errors(s + 100);
    for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
      auto& values = sights[s].of(contract::TensorKind::kGradient).emplace_back();
      for (int64_t i = 0; i < parameter.numel(); ++i)
        values.push_back(numbers.Normal() * (1 + error * errors.Normal()));
    }
  }
  return sights;
}

TEST(GuardBias, IsNoticedInEachLargeTensorUnlessErrorsHideIt) {
  contract::Gpt2Spec model = ExampleGpt2();
  model.vocab = 360;  // times 12
  const std::vector<StepSight> truth = LargeSteps(model, 0);
  Guard guard;
  GuardBias(model, truth, LargeSteps(model, 1e-3), guard);
  ExpectAllNoticed(guard, 2, "bias");
  Guard blind;
  GuardBias(model, truth, LargeSteps(model, 0.5), blind);
  EXPECT_EQ(blind.Check().outcome, CheckOutcome::kVacuous);
  EXPECT_EQ(blind.Check().detail, "bias does not notice 2^-10 of embed.weight");
}

TEST(GuardAccumulation, IsNoticedWhereThePlainEngineShowsBits) {
  std::vector<StepSight> seen(8);
  for (size_t s = 0; s < seen.size(); ++s) {
    ExampleNumbers numbers(s);
    for (const contract::ParameterSpec& parameter : contract::Parameters(ExampleGpt2())) {
      auto& values = seen[s].of(contract::TensorKind::kGradient).emplace_back();
      const int64_t numel = parameter.frozen ? 0 : parameter.numel();
      for (int64_t i = 0; i < numel; ++i) values.push_back(static_cast<float>(numbers.Normal()));
    }
  }
  Guard guard;
  GuardAccumulation(ExampleGpt2(), seen, seen, guard);
  ExpectAllNoticed(guard, 2, "accumulation");
  std::vector<StepSight> plain = seen;
  for (StepSight& sight : plain) {
    for (auto& tensor : sight.of(contract::TensorKind::kGradient)) {
      for (double& value : tensor) value = ToBf16(static_cast<float>(value));
    }
  }
  Guard blind;
  GuardAccumulation(ExampleGpt2(), plain, seen, blind);
  EXPECT_EQ(blind.Check().outcome, CheckOutcome::kVacuous);
  EXPECT_EQ(blind.Check().detail, "accumulation does not notice sums in storage");
  Guard empty;
  GuardAccumulation(ExampleGpt2(), {}, {}, empty);
  EXPECT_EQ(empty.Check().detail, "no change could be planted");
}

TEST(GuardUpdate, IsNoticedWithAndWithoutMoments) {
  for (bool adamw : {true, false}) {
    ExampleUpdate update;
    if (!adamw) update.spec.config.optimizer = contract::OptimizerKind::kSgd;
    MakeBefore(update, 1);
    Execute(Engine{}, update);
    Guard guard;
    GuardUpdate(update.spec, update.start(), update.after, guard);
    ExpectAllNoticed(guard, adamw ? 2 : 1, "update");
  }
}

TEST(GuardUpdate, PlantsNothingInAStepThatMovesNothing) {
  ExampleUpdate update;
  update.spec.config.optimizer = contract::OptimizerKind::kSgd;
  MakeBefore(update, 1);
  Engine still;
  still.no_update = true;
  Execute(still, update);
  Guard guard;
  GuardUpdate(update.spec, update.start(), update.after, guard);
  EXPECT_EQ(guard.Check().outcome, CheckOutcome::kVacuous);
}

// The row of a token has no value, and that may be the last one of the vocabulary.
TEST(GuardSkipped, IsNoticedWhereverTheStateHasNoValue) {
  for (bool at_the_end : {false, true}) {
    ExampleUpdate update;
    MakeBefore(update, 1);
    if (at_the_end) {
      for (auto& entry : update.before) entry.master.back() = std::numeric_limits<float>::quiet_NaN();
    }
    Execute({.no_update = true}, update);
    update.after.of(TensorKind::kGradient)[3][5] = HUGE_VAL;
    update.after.real.gradient_norm = std::numeric_limits<double>::quiet_NaN();
    update.after.real.skipped = true;
    Guard guard;
    GuardSkipped(update.spec, update.start(), update.after, guard);
    ExpectAllNoticed(guard, 2, "skip");
  }
}

TEST(GuardTrajectory, IsNoticedUnlessThePlainRunsScatterAsFarAsTheTruthFalls) {
  std::vector<double> truth;
  for (int step = 0; step < 20; ++step) truth.push_back(4 - 0.1 * step);
  std::vector<std::vector<double>> near(10, truth), wide(10, truth);
  for (auto& losses : near) losses.back() *= 1 + 1e-4;
  for (auto& losses : wide) losses.back() *= 1.2;
  Guard guard;
  GuardTrajectory(truth, 100, near, truth, guard);
  ExpectAllNoticed(guard, 2, "trajectory");
  Guard blind;
  GuardTrajectory(truth, 100, wide, truth, blind);
  EXPECT_EQ(blind.Check().detail, "trajectory does not notice losses that stay");
}

}  // namespace
}  // namespace plumbline::conformance
