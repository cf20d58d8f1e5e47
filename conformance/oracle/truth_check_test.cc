// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/truth_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

constexpr int64_t kBatch = 6;

contract::Gpt2Spec Model() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.positions = 3;
  model.hidden = 5;
  model.vocab = 7;
  model.frozen = {"pos.weight"};
  return model;
}

StepSight Sight() {
  StepSight sight;
  sight.step = 2;
  sight.loss = 1.5;
  sight.tokens = 18;
  double value = 0.5;
  for (const contract::ParameterSpec& parameter : contract::Parameters(Model())) {
    auto& tensor = sight.of(TensorKind::kGradient).emplace_back();
    for (int64_t i = 0; !parameter.frozen && i < parameter.numel(); ++i)
      tensor.push_back(value = std::fmod(value * 1.7, 1));
  }
  return sight;
}

RealResult Check(const StepSight& reference, const StepSight& witness) {
  return CheckTruth(Model(), kBatch, std::vector{reference}, std::vector{witness});
}

TEST(CheckTruth, PassesWhatDiffersInTheLastPlacesAndCountsEveryValue) {
  const StepSight reference = Sight();
  StepSight witness = reference;
  int64_t values = 1;
  for (auto& tensor : witness.of(TensorKind::kGradient)) {
    for (double& value : tensor) value *= 1 + 0x1p-50;
    values += static_cast<int64_t>(tensor.size());
  }
  const RealResult result = Check(reference, witness);
  EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << result.check.detail;
  EXPECT_EQ(result.check.compared, values);
}

TEST(CheckTruth, FindsOneElementOfWhichFp64HasOtherDigits) {
  for (double factor : {1 + 1e-11, -1.0, 0.0, -0.0, kSubnormal, kNaN, kOtherNaN, kInf, -kInf}) {
    StepSight witness = Sight();
    witness.of(TensorKind::kGradient)[5][3] *= factor;
    const RealResult result = Check(Sight(), witness);
    EXPECT_EQ(result.check.outcome, CheckOutcome::kFail) << factor;
    ASSERT_TRUE(result.divergence);
    EXPECT_EQ(result.divergence->tensor, contract::Parameters(Model())[5].name);
    EXPECT_EQ(result.divergence->step, 2);
  }
}

TEST(CheckTruth, FindsALoss) {
  StepSight witness = Sight();
  witness.loss *= 1 + 1e-11;
  EXPECT_EQ(Check(Sight(), witness).check.outcome, CheckOutcome::kFail);
  for (double loss : {kNaN, kOtherNaN, kInf, -kInf, 0.0, -1.5}) {
    witness.loss = loss;
    ASSERT_TRUE(Check(Sight(), witness).divergence) << loss;
    EXPECT_EQ(Check(Sight(), witness).divergence->quantity, "loss") << loss;
  }
}

// Two engines that have no number do not disagree about it; one that has a number does.
TEST(CheckTruth, SaysThatARunHasNoFiniteValuesWhereNeitherHas) {
  for (double mine : kNotFinite) {
    for (double other : kNotFinite) {
      StepSight reference = Sight(), witness = Sight();
      reference.of(TensorKind::kGradient)[5][3] = mine;
      witness.of(TensorKind::kGradient)[5][3] = other;
      const RealResult gradient = Check(reference, witness);
      EXPECT_EQ(gradient.check.outcome, CheckOutcome::kVacuous) << mine << " and " << other;
      EXPECT_EQ(WhyNoTruth(gradient).find("the run has no finite values: step 2: gradient of " +
                                          contract::Parameters(Model())[5].name + ": reference "),
                0u)
          << WhyNoTruth(gradient);
      reference.loss = mine;
      witness.loss = other;
      const RealResult loss = Check(reference, witness);
      EXPECT_EQ(loss.check.outcome, CheckOutcome::kVacuous);
      EXPECT_EQ(WhyNoTruth(loss).find("the run has no finite values: step 2: loss: reference "), 0u);
      witness.loss = 1.5;
      EXPECT_EQ(Check(reference, witness).check.outcome, CheckOutcome::kFail);
      EXPECT_EQ(WhyNoTruth(Check(reference, witness)).find("reference and witness disagree in fp64: step 2: loss: "),
                0u);
      EXPECT_EQ(Check(witness, reference).check.outcome, CheckOutcome::kFail);
    }
  }
  EXPECT_EQ(WhyNoTruth(CheckTruth(Model(), kBatch, {}, {})).find("reference and witness cannot be compared: "), 0u);
}

// Not even two engines that agree, and not one of them that would set an infinite scale for all others.
TEST(CheckTruth, TakesNothingThatIsNotFiniteForTheTruth) {
  for (double odd : kNotFinite) {
    StepSight reference = Sight();
    reference.of(TensorKind::kGradient)[5][3] = odd;
    for (const StepSight& witness : {Sight(), reference}) {
      const RealResult result = Check(reference, witness);
      ASSERT_TRUE(result.divergence) << odd;
      EXPECT_EQ(result.divergence->tensor, contract::Parameters(Model())[5].name) << odd;
    }
    reference = Sight();
    reference.loss = odd;
    for (const StepSight& witness : {Sight(), reference}) {
      ASSERT_TRUE(Check(reference, witness).divergence) << odd;
      EXPECT_EQ(Check(reference, witness).divergence->quantity, "loss") << odd;
    }
  }
}

TEST(CheckTruth, TakesZerosAndSubnormalNumbersForNearlyZero) {
  for (double mine : {0.0, -0.0, kSubnormal, 5e-324}) {
    for (double other : {0.0, -0.0, -kSubnormal, 5e-324}) {
      StepSight reference = Sight(), witness = Sight();
      reference.of(TensorKind::kGradient)[5][3] = mine;
      witness.of(TensorKind::kGradient)[5][3] = other;
      EXPECT_EQ(Check(reference, witness).check.outcome, CheckOutcome::kPass) << mine << " and " << other;
    }
  }
}

TEST(CheckTruth, FailsWhereStepsTensorsOrElementsAreMissingOnEitherSide) {
  const std::string tensor = contract::Parameters(Model())[5].name;
  for (bool reference_too : {false, true}) {
    for (const auto change : {+[](StepSight& sight) { sight.of(TensorKind::kGradient)[5].pop_back(); },
                              +[](StepSight& sight) { sight.of(TensorKind::kGradient)[5].push_back(0); },
                              +[](StepSight& sight) { sight.of(TensorKind::kGradient)[5].clear(); },
                              +[](StepSight& sight) { sight.of(TensorKind::kGradient).resize(5); }}) {
      StepSight one = Sight();
      change(one);
      for (const RealResult& result :
           {Check(one, reference_too ? one : Sight()), Check(reference_too ? one : Sight(), one)}) {
        ASSERT_TRUE(result.divergence);
        EXPECT_EQ(result.divergence->quantity, "elements") << result.check.detail;
        EXPECT_EQ(result.divergence->tensor, tensor) << result.check.detail;
      }
    }
  }
  StepSight other = Sight();
  ++other.tokens;
  EXPECT_EQ(Check(Sight(), other).divergence->quantity, "tokens");
  other = Sight();
  ++other.step;
  EXPECT_EQ(Check(Sight(), other).divergence->quantity, "step");
  EXPECT_EQ(CheckTruth(Model(), kBatch, std::vector{Sight(), Sight()}, std::vector{Sight()}).divergence->quantity,
            "steps");
}

// A text of equal bytes is learned until p - y and log p are differences of nearly equal numbers: what is rounded in
// p stays, and is a larger and larger part of what is left.
TEST(CheckTruth, AllowsALossNearZeroTheRoundingsOfItsProbabilities) {
  for (double loss : {1.5, 1e-2, 1e-4, 1e-6}) {
    StepSight reference = Sight();
    reference.loss = loss;
    StepSight witness = reference;
    const double rounding = 0x1p-50 / -std::expm1(-loss);
    witness.loss += 0x1p-50;
    for (auto& tensor : witness.of(TensorKind::kGradient)) {
      for (double& value : tensor) value *= 1 + rounding;
    }
    EXPECT_EQ(Check(reference, witness).check.outcome, CheckOutcome::kPass) << Check(reference, witness).check.detail;
    witness = reference;
    witness.loss += 0x1p-40;
    EXPECT_EQ(Check(reference, witness).check.outcome, CheckOutcome::kFail) << loss;
    witness = reference;
    for (auto& tensor : witness.of(TensorKind::kGradient)) {
      for (double& value : tensor) value *= 1 + 0x1p10 * rounding;
    }
    EXPECT_EQ(Check(reference, witness).check.outcome, CheckOutcome::kFail) << loss;
  }
}

TEST(CheckTruth, IsVacuousWhereAllOfTheGradientMayBeRounding) {
  for (double loss : {1e-15, 0.0, -1e-17}) {
    StepSight both = Sight();
    both.loss = loss;
    const RealResult result = Check(both, both);
    EXPECT_EQ(result.check.outcome, CheckOutcome::kVacuous) << loss;
    EXPECT_TRUE(result.check.detail.starts_with("step 2: loss is ")) << result.check.detail;
    EXPECT_TRUE(result.check.detail.ends_with("a gradient of zero would pass")) << result.check.detail;
    both.loss = 1e-12;
    EXPECT_EQ(Check(both, both).check.outcome, CheckOutcome::kPass) << Check(both, both).check.detail;
  }
}

TEST(CheckTruth, AllowsTheWitnessMoreStepsAndIsVacuousWithoutASharedOne) {
  EXPECT_EQ(CheckTruth(Model(), kBatch, std::vector{Sight()}, std::vector{Sight(), Sight()}).check.outcome,
            CheckOutcome::kPass);
  EXPECT_EQ(CheckTruth(Model(), kBatch, {}, std::vector{Sight()}).check.outcome, CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
