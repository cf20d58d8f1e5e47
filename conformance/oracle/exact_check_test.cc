// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/exact_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

RunDigest ExampleRun() { return MergeTraces(ExampleCase(1), ExampleTraces(1, 0)).run; }

ExactResult Compare(const RunDigest& candidate) {
  return CompareExactly(ExampleCase(1).model, ExampleRun(), candidate);
}

TEST(CompareExactly, PassesEqualRunsAndCountsWhatItCompared) {
  const ExactResult result = Compare(ExampleRun());
  EXPECT_EQ(result.check.outcome, CheckOutcome::kPass);
  EXPECT_FALSE(result.divergence);
  // 8 tensors of 4 kinds and 2 scalars in each step.
  EXPECT_EQ(result.check.compared, kExampleSteps * (8 * 4 + 2));
}

TEST(CompareExactly, FindsOneChangedFieldOfOneDigestAnywhere) {
  const auto parameters = contract::Parameters(ExampleCase(1).model);
  for (size_t step = 0; step < kExampleSteps; ++step) {
    for (TensorKind kind : contract::kTensorKinds) {
      if (kind == TensorKind::kSecondMoment) continue;  // the example has none
      for (size_t tensor = 0; tensor < parameters.size(); ++tensor) {
        RunDigest candidate = ExampleRun();
        candidate.steps[step].tensors[static_cast<int>(kind)][tensor].hash += 1;
        const ExactResult result = Compare(candidate);
        ASSERT_TRUE(result.divergence);
        EXPECT_EQ(result.check.outcome, CheckOutcome::kFail);
        EXPECT_EQ(result.divergence->step, static_cast<int64_t>(step));
        EXPECT_EQ(result.divergence->quantity, Name(kind));
        EXPECT_EQ(result.divergence->tensor, parameters[tensor].name);
        EXPECT_EQ(result.divergence->num_tensors, 1);
      }
    }
  }
}

TEST(CompareExactly, ComparesTheSumsToo) {
  for (int field = 0; field < 3; ++field) {
    RunDigest candidate = ExampleRun();
    contract::Digest& digest = candidate.steps[0].tensors[0][0];
    field == 0 ? digest.sum += 1 : field == 1 ? digest.sum_squares += 1 : (digest.sum_indexed += 1, 0);
    EXPECT_EQ(Compare(candidate).check.outcome, CheckOutcome::kFail) << field;
  }
}

TEST(CompareExactly, ReportsTheFirstStepAndInItTheFirstQuantity) {
  RunDigest candidate = ExampleRun();
  candidate.steps[3].tensors[0][0].hash += 1;
  candidate.steps[1].tensors[4][0].hash += 1;
  candidate.steps[1].tensors[1][2].hash += 1;
  candidate.steps[1].tensors[1][5].hash += 1;
  const ExactResult result = Compare(candidate);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->step, 1);
  EXPECT_EQ(result.divergence->quantity, "moment");
  EXPECT_EQ(result.divergence->num_tensors, 2);
}

TEST(CompareExactly, FindsAWrongLossAndAWrongTokenCount) {
  RunDigest candidate = ExampleRun();
  candidate.steps[2].loss += 0.5;
  ASSERT_TRUE(Compare(candidate).divergence);
  EXPECT_EQ(Compare(candidate).divergence->quantity, "loss");
  candidate = ExampleRun();
  candidate.steps[2].tokens -= 1;
  ASSERT_TRUE(Compare(candidate).divergence);
  EXPECT_EQ(Compare(candidate).divergence->quantity, "tokens");
}

// A rank that goes wrong alone is held for the truth by nobody: the first rank is right, and is what is kept.
TEST(CompareExactly, NamesTheStepInWhichARankFirstDiffersFromTheTruth) {
  for (int64_t wrong : {0, 1, 2}) {
    auto traces = ExampleTraces(3, 0);
    traces[static_cast<size_t>(wrong)].steps[1].of(TensorKind::kMaster)[4].digest.hash += 1;
    // One step later it has spread to all ranks.
    for (contract::Trace& trace : traces) trace.steps[2].of(TensorKind::kGradient)[7].digest.hash += 1;
    const ExactResult result =
        CompareExactly(ExampleCase(1).model, ExampleRun(), MergeTraces(ExampleCase(3), traces).run);
    ASSERT_TRUE(result.divergence) << wrong;
    EXPECT_EQ(result.divergence->step, 1) << wrong;
    EXPECT_EQ(result.divergence->quantity, "master") << wrong;
    EXPECT_EQ(result.divergence->tensor, contract::Parameters(ExampleCase(1).model)[4].name) << wrong;
    if (wrong > 0) {
      EXPECT_NE(result.check.detail.find("on rank " + std::to_string(wrong)), std::string::npos) << result.check.detail;
    }
  }
}

TEST(CompareExactly, NamesTheRankThatStatesAnotherLossOrTokenCount) {
  auto traces = ExampleTraces(3, 0);
  traces[2].steps[1].loss += 1;
  const auto compare = [&] {
    return CompareExactly(ExampleCase(1).model, ExampleRun(), MergeTraces(ExampleCase(3), traces).run);
  };
  ASSERT_TRUE(compare().divergence);
  EXPECT_EQ(compare().divergence->step, 1);
  EXPECT_EQ(compare().divergence->quantity, "loss");
  EXPECT_NE(compare().check.detail.find("on rank 2"), std::string::npos) << compare().check.detail;
  traces[1].steps[0].tokens += 1;
  EXPECT_EQ(compare().divergence->quantity, "tokens");
  EXPECT_EQ(compare().divergence->step, 0);
}

TEST(CompareExactly, NeverPassesNaN) {
  RunDigest candidate = ExampleRun();
  candidate.steps[0].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Compare(candidate).check.outcome, CheckOutcome::kFail);
}

TEST(CompareExactly, FailsOnAnotherNumberOfStepsOrTensors) {
  RunDigest candidate = ExampleRun();
  candidate.steps.pop_back();
  EXPECT_EQ(Compare(candidate).check.outcome, CheckOutcome::kFail);
  candidate = ExampleRun();
  candidate.steps[0].tensors[3].pop_back();
  EXPECT_EQ(Compare(candidate).check.outcome, CheckOutcome::kFail);
}

TEST(CompareExactly, IsVacuousWhenThereIsNothingToCompare) {
  EXPECT_EQ(CompareExactly(ExampleCase(1).model, RunDigest{}, RunDigest{}).check.outcome, CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
