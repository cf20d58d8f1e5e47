// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/truth_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
  for (double factor :
       {1 + 1e-11, -1.0, 0.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
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
  witness.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Check(Sight(), witness).check.outcome, CheckOutcome::kFail);
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

TEST(CheckTruth, IsVacuousWithoutASharedStep) {
  EXPECT_EQ(CheckTruth(Model(), kBatch, {}, std::vector{Sight()}).check.outcome, CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
