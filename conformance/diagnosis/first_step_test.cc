// SPDX-License-Identifier: Apache-2.0
#include "conformance/diagnosis/first_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/oracle/testing/example_step.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;

constexpr size_t kTensor = 10;  // layers.0.mlp.up.weight

struct Steps {
  Yardstick yardstick;
  std::vector<StepSight> candidate;
  Divergence divergence{9, "gradient", "layers.0.mlp.up.weight", 1, "layers.0.mlp.up.weight: norm"};

  Steps() {
    yardstick.truth = ExampleTruth(1);
    yardstick.plain = ExampleEngine(yardstick.truth, contract::DType::kF32, 1);
    yardstick.other_plain = ExampleEngine(yardstick.truth, contract::DType::kF32, 2);
    candidate = ExampleEngine(yardstick.truth, contract::DType::kF32, 3);
  }
  void Scale(size_t first_step, double factor) {
    for (size_t s = first_step; s < candidate.size(); ++s) {
      for (double& value : candidate[s].of(TensorKind::kGradient)[kTensor]) value *= factor;
    }
  }
  int64_t First() const { return FirstStepOf(ExampleGpt2(), yardstick, candidate, divergence); }
};

TEST(FirstStep, IsTheOneInWhichTheMistakeBegins) {
  for (size_t begin : {0u, 1u, 3u}) {
    Steps steps;
    ASSERT_EQ(contract::Parameters(ExampleGpt2())[kTensor].name, steps.divergence.tensor);
    steps.Scale(begin, 0.5);
    EXPECT_EQ(steps.First(), kExampleRealSteps[begin]);
  }
}

TEST(FirstStep, ASmallMistakeInEveryStepIsOfTheFirstThoughOthersAreWorse) {
  Steps steps;
  steps.Scale(0, 1 + 2e-5);  // a hundred times the plain engines' error
  steps.Scale(2, 3);
  EXPECT_EQ(steps.First(), 0);
}

TEST(FirstStep, NotANumberIsLargerThanAll) {
  Steps steps;
  steps.candidate[2].of(TensorKind::kGradient)[kTensor][3] = NAN;
  EXPECT_EQ(steps.First(), 2);
}

TEST(FirstStep, WithoutATensorItIsTheDivergencesOwn) {
  Steps steps;
  steps.divergence.tensor = "";
  EXPECT_EQ(steps.First(), 9);
  steps.divergence.tensor = "nobody";
  EXPECT_EQ(steps.First(), 9);
}

TEST(FirstStep, AFindingOfAnotherStepSaysSo) {
  EXPECT_EQ(OtherStepText(7, 7), "");
  EXPECT_EQ(OtherStepText(17, 7), "; of the single steps 17 is the worst and 7 the first that is wrong");
}

TEST(FirstStep, NoiseIsThePlainEngineFartherFromTheTruth) {
  Steps steps;
  double largest = 0;
  for (const auto* engine : {&steps.yardstick.plain, &steps.yardstick.other_plain}) {
    double squares = 0;
    for (size_t i = 0; i < steps.yardstick.truth[3].of(TensorKind::kGradient)[kTensor].size(); ++i) {
      const double error = (*engine)[3].of(TensorKind::kGradient)[kTensor][i] -
                           steps.yardstick.truth[3].of(TensorKind::kGradient)[kTensor][i];
      squares += error * error;
    }
    largest = std::max(largest, std::sqrt(squares));
  }
  EXPECT_GT(largest, 0);
  EXPECT_DOUBLE_EQ(NoiseOf(ExampleGpt2(), steps.yardstick, steps.divergence), largest);
  steps.divergence.quantity = "moment";
  EXPECT_EQ(NoiseOf(ExampleGpt2(), steps.yardstick, steps.divergence), 0);
}

}  // namespace
}  // namespace plumbline::conformance
