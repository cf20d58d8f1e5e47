// SPDX-License-Identifier: Apache-2.0
// Made-up gradients whose errors are shared by whole rows, as those of bf16 are, so that the answer is known: how often
// the check accuses an engine without a bias, how often it finds one of 2^-10, and when it says that it cannot see one.
#include "conformance/oracle/bias_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

// One matrix of 4096 elements and one of 4288; all others are smaller.
contract::ModelSpec Model() {
  contract::Gpt2Spec model = ExampleGpt2();
  model.width = 8;
  model.heads = 2;
  model.hidden = 513;
  model.vocab = 512;
  return model;
}

constexpr size_t kEmbed = 0;  // 512 x 8

struct Steps {
  std::vector<StepSight> truth, seen;
};

// The errors of a row of eight are the truth times one normal number, and times one more for each element.
Steps MakeSteps(uint64_t seed, size_t num_steps, double row_error) {
  const contract::ModelSpec model = Model();
  Steps steps;
  for (size_t s = 0; s < num_steps; ++s) {
    ExampleNumbers numbers(seed * 1000 + s);
    StepSight truth, seen;
    truth.storage = seen.storage = contract::DType::kBF16;
    for (const contract::ParameterSpec& parameter : contract::Parameters(model)) {
      auto& expected = truth.of(TensorKind::kGradient).emplace_back();
      auto& values = seen.of(TensorKind::kGradient).emplace_back();
      if (parameter.frozen) continue;
      double shared = 0;
      for (int64_t i = 0; i < parameter.numel(); ++i) {
        if (i % 8 == 0) shared = row_error * numbers.Normal();
        expected.push_back(numbers.Normal());
        values.push_back(expected.back() * (1 + shared + row_error * numbers.Normal()));
      }
    }
    steps.truth.push_back(std::move(truth));
    steps.seen.push_back(std::move(seen));
  }
  return steps;
}

CheckOutcome OutcomeOf(const Steps& steps) { return CheckBias(Model(), steps.truth, steps.seen).check.outcome; }

constexpr double kRowError = 4e-3;
constexpr size_t kNumSteps = 32;

void PlantBias(std::vector<StepSight>& sights, double factor) {
  for (StepSight& sight : sights) {
    for (double& value : sight.of(TensorKind::kGradient)[kEmbed]) value *= factor;
  }
}

TEST(CheckBias, AccusesNoneOf200EnginesAndFindsABiasOfTwoToTheMinus10InAtLeast190OfThem) {
  int found_above = 0, found_below = 0;
  const auto finds = [](const Steps& steps) {
    const RealResult result = CheckBias(Model(), steps.truth, steps.seen);
    if (result.check.outcome != CheckOutcome::kFail) return false;
    EXPECT_EQ(result.divergence->tensor, "embed.weight") << result.check.detail;
    EXPECT_EQ(result.divergence->num_tensors, 1);
    return true;
  };
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Steps steps = MakeSteps(seed, kNumSteps, kRowError);
    const RealResult clean = CheckBias(Model(), steps.truth, steps.seen);
    ASSERT_EQ(clean.check.outcome, CheckOutcome::kPass) << seed << ": " << clean.check.detail;
    PlantBias(steps.seen, 1 + kSoughtBias);
    found_above += finds(steps);
    PlantBias(steps.seen, (1 - kSoughtBias) / (1 + kSoughtBias));
    found_below += finds(steps);
  }
  EXPECT_GE(found_above, 190);
  EXPECT_GE(found_below, 190);
}

// The statistic itself: at a rate that 2000 repetitions can count, and at the edge of what it says it sees.
TEST(JudgeSlopes, KeepsItsRateAndItsPowerForSlopesOfKnownScatter) {
  int accused = 0, found = 0;
  constexpr int kRepetitions = 2000;
  // Student's t with 31 degrees of freedom exceeds 2.0395 in absolute value with a chance of 0.05.
  constexpr double kT05 = 2.0395;
  for (uint64_t seed = 0; seed < kRepetitions; ++seed) {
    ExampleNumbers numbers(seed);
    SlopeSample sample{0, "made up", 4096, {}, 0};
    for (size_t s = 0; s < kNumSteps; ++s) sample.slopes.push_back(1e-3 * numbers.Normal());
    const SlopeFinding finding = JudgeSlopes(sample, 0);
    accused += std::abs(finding.student_t) > kT05;
    EXPECT_TRUE(finding.within()) << seed;
    for (double& slope : sample.slopes) slope += 1e-3 / std::sqrt(kNumSteps) * (6.1042 + 1.6955);
    found += !JudgeSlopes(sample, 0).within();
  }
  EXPECT_NEAR(accused, 0.05 * kRepetitions, 4 * std::sqrt(0.05 * 0.95 * kRepetitions));
  EXPECT_NEAR(found, 0.95 * kRepetitions, 0.05 * kRepetitions);
}

TEST(JudgeSlopes, LimitIsStudentsQuantileTimesTheStandardErrorPlusTheLegalSlope) {
  const SlopeFinding finding = JudgeSlopes({0, "made up", 4096, {1e-3, 2e-3, 3e-3}, 0}, 1e-4);
  EXPECT_DOUBLE_EQ(finding.mean, 2e-3);
  EXPECT_DOUBLE_EQ(finding.deviation, 1e-3);
  // With two degrees of freedom P(|T| > t) = 1 - t / sqrt(2 + t^2), so t = sqrt(2 / (1 / (1 - a)^2 - 1)).
  const double quantile = std::sqrt(2 / (1 / std::pow(1 - kBiasFalseAlarmRate, 2) - 1));
  EXPECT_NEAR(finding.limit, quantile * 1e-3 / std::sqrt(3) + 1e-4, 1e-6);
}

TEST(JudgeSlopes, CountsElementsThatShareTheirErrorsAsFewer) {
  // The slope's variance is, for a row of eight normal values t, E (sum t^2)^2 + E sum t^4 = 80 + 24 in units of the
  // squared error; if elements erred one by one, with the same sizes, it would be 2 E sum t^4 = 48.
  constexpr double kExpected = 4096 * 48.0 / 104;
  double effective = 0;
  constexpr int kRepetitions = 20;
  for (uint64_t seed = 0; seed < kRepetitions; ++seed) {
    const Steps steps = MakeSteps(seed, kNumSteps, kRowError);
    const std::vector<SlopeSample> samples = MeasureSlopes(Model(), steps.truth, steps.seen);
    effective += JudgeSlopes(samples.front(), 0).effective_elems / kRepetitions;
  }
  EXPECT_NEAR(effective, kExpected, 0.2 * kExpected);
}

TEST(CheckBias, IsVacuousWhereErrorsHideTheBias) {
  const Steps steps = MakeSteps(1, kNumSteps, 20 * kRowError);
  const RealResult result = CheckBias(Model(), steps.truth, steps.seen);
  EXPECT_EQ(result.check.outcome, CheckOutcome::kVacuous);
  EXPECT_NE(result.check.detail.find("embed.weight"), std::string::npos) << result.check.detail;
}

TEST(CheckBias, IsVacuousWithoutStepsWithoutLargeTensorsAndWhereTheTruthIsZero) {
  for (size_t num_steps : {0, 1, 2}) EXPECT_EQ(OutcomeOf(MakeSteps(1, num_steps, kRowError)), CheckOutcome::kVacuous);
  EXPECT_EQ(CheckBias(ExampleGpt2(), ExampleTruth(1), ExampleTruth(1)).check.outcome, CheckOutcome::kVacuous);
  Steps steps = MakeSteps(1, kNumSteps, kRowError);
  for (std::vector<StepSight>* sights : {&steps.truth, &steps.seen}) {
    for (double& value : sights->back().of(TensorKind::kGradient)[kEmbed]) value = 0;
  }
  EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kVacuous);
}

TEST(CheckBias, RejectsWhatIsNotFiniteMissingOrOfAnotherSize) {
  const Steps good = MakeSteps(1, kNumSteps, kRowError);
  ASSERT_EQ(OutcomeOf(good), CheckOutcome::kPass);
  for (const double value : kNotFinite) {
    Steps steps = good;
    steps.seen[7].of(TensorKind::kGradient)[kEmbed].back() = value;
    EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kFail) << value;
    steps.truth = steps.seen;  // an engine that agrees with what is no truth
    EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kFail) << value;
    steps.seen = good.seen;
    EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kVacuous) << value;
  }
  for (std::vector<StepSight> Steps::*sights : {&Steps::truth, &Steps::seen}) {
    for (const auto change : {+[](StepSight& sight) { sight.of(TensorKind::kGradient)[kEmbed].pop_back(); },
                              +[](StepSight& sight) { sight.of(TensorKind::kGradient)[kEmbed].push_back(0); },
                              +[](StepSight& sight) { sight.of(TensorKind::kGradient)[kEmbed].clear(); },
                              +[](StepSight& sight) { sight.of(TensorKind::kGradient).clear(); }}) {
      Steps steps = good;
      change((steps.*sights)[7]);
      EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kFail);
    }
    Steps steps = good;
    (steps.*sights).pop_back();
    EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kFail);
  }
}

// Zeros of any sign and subnormal numbers are real numbers: a right engine may have others than the truth.
TEST(CheckBias, TakesZerosAndSubnormalNumbersForNearlyZero) {
  for (double truth : {0.0, -0.0, kSubnormal}) {
    for (double seen : {0.0, -0.0, -kSubnormal}) {
      Steps steps = MakeSteps(1, kNumSteps, kRowError);
      for (size_t s = 0; s < kNumSteps; ++s) {
        steps.truth[s].of(TensorKind::kGradient)[kEmbed][5] = truth;
        steps.seen[s].of(TensorKind::kGradient)[kEmbed][5] = seen;
      }
      EXPECT_EQ(OutcomeOf(steps), CheckOutcome::kPass) << truth << " and " << seen;
    }
  }
}

TEST(LegalSlope, IsASmallPartOfWhatIsSoughtInBf16AndNothingInFp32) {
  contract::Gpt2Spec model;
  model.layers = 1;
  EXPECT_LT(LegalSlope(model, contract::DType::kBF16), kSoughtBias / 5);
  EXPECT_GT(LegalSlope(model, contract::DType::kBF16), 0);
  EXPECT_LT(LegalSlope(model, contract::DType::kF32), 1e-12);
}

}  // namespace
}  // namespace plumbline::conformance
