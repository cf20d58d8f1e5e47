// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/resumed_run.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "conformance/contract/digest.h"
#include "conformance/contract/trace.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

contract::ModelSpec Model() {
  contract::Gpt2Spec model;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.positions = 3;
  model.hidden = 4;
  model.vocab = 5;
  model.frozen = {"pos.weight"};
  return model;
}

constexpr size_t kFree = 0, kFrozen = 1;  // embed.weight and pos.weight

// Seven steps; every digest is of its own.
RunDigest Whole() {
  RunDigest run;
  const size_t num_tensors = contract::Parameters(Model()).size();
  for (int64_t step = 0; step < 7; ++step) {
    StepDigest& digest = run.steps.emplace_back();
    digest.step = step;
    digest.loss = 3 - 0.1 * static_cast<double>(step);
    for (int kind = 0; kind < contract::kNumTensorKinds; ++kind) {
      for (size_t i = 0; i < num_tensors; ++i) {
        contract::Digest& entry = digest.tensors[kind].emplace_back();
        entry.hash = static_cast<uint64_t>(step * 1000 + kind * 100) + i;
      }
    }
  }
  return run;
}

CheckOutcome Outcome(const RunDigest& resumed) { return CompareResumed(Model(), Whole(), resumed).check.outcome; }

TEST(CompareResumed, PassesTheLastStepsAndCountsThem) {
  const RealResult result = CompareResumed(Model(), Whole(), Steps(Whole(), 4, 3));
  EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << result.check.detail;
  EXPECT_GE(result.check.compared, static_cast<int64_t>(3 * contract::kNumTensorKinds));
}

TEST(CompareResumed, FailsOnOneBitOfAnyTensorOfAnyKindInAnyStepButTheMastersOfFrozenOnes) {
  for (size_t step = 0; step < 3; ++step) {
    for (TensorKind kind : contract::kTensorKinds) {
      for (size_t tensor : {kFree, kFrozen}) {
        RunDigest resumed = Steps(Whole(), 4, 3);
        resumed.steps[step].tensors[static_cast<int>(kind)][tensor].hash ^= 1;
        const bool is_echo = tensor == kFrozen && kind == TensorKind::kMaster;
        EXPECT_EQ(Outcome(resumed), is_echo ? CheckOutcome::kPass : CheckOutcome::kFail) << Name(kind) << tensor;
      }
    }
  }
}

// A run that goes on from another state is not the same for being broken in another way.
TEST(CompareResumed, TellsNumbersOfOtherClassesApartButNotNaNs) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double losses[] = {0.0, -0.0, 5e-324, kInf, -kInf, std::numeric_limits<double>::quiet_NaN()};
  for (const double& a : losses) {
    for (const double& b : losses) {
      RunDigest whole = Whole(), resumed = Steps(Whole(), 4, 3);
      whole.steps[5].loss = a;
      resumed.steps[1].loss = b;
      EXPECT_EQ(CompareResumed(Model(), whole, resumed).check.outcome,
                &a == &b ? CheckOutcome::kPass : CheckOutcome::kFail)
          << a << " and " << b;
    }
  }
}

TEST(CompareResumed, FailsOnATensorThatIsNotThere) {
  RunDigest resumed = Steps(Whole(), 4, 3);
  resumed.steps[1].tensors[static_cast<int>(TensorKind::kWeight)][kFree] = {};
  EXPECT_EQ(Outcome(resumed), CheckOutcome::kFail);
  resumed.steps[1].tensors[static_cast<int>(TensorKind::kWeight)].pop_back();
  EXPECT_EQ(Outcome(resumed), CheckOutcome::kFail);
}

TEST(CompareResumed, FailsOnOtherStepsAndOnMoreThanThereAre) {
  EXPECT_EQ(Outcome(Steps(Whole(), 3, 3)), CheckOutcome::kFail);
  RunDigest longer = Whole();
  longer.steps.push_back(longer.steps.back());
  EXPECT_EQ(Outcome(longer), CheckOutcome::kFail);
  EXPECT_EQ(Outcome({}), CheckOutcome::kVacuous);
}

TEST(ResumedCase, SavesNothingAndIsTracedFromTheStepAfterTheSave) {
  contract::Case base;
  base.id = "a";
  base.steps = 60;
  base.save_steps = {54};
  EXPECT_TRUE(ResumedCase(base).resume);
  EXPECT_TRUE(ResumedCase(base).save_steps.empty());
  EXPECT_EQ(ResumedCase(base).steps, 60);
  EXPECT_NE(ResumedCase(base).id, base.id);
  const contract::Case traced = AfterStep(base, 54);
  EXPECT_EQ(traced.first_step, 55);
  EXPECT_EQ(traced.steps, 5);
}

TEST(WithFrozenMastersOf, TakesTheFrozenOnesFromTheStateAndNothingElse) {
  contract::Gpt2Spec model;
  model.layers = model.heads = 1;
  model.width = model.positions = model.hidden = model.vocab = 2;
  model.frozen = {"pos.weight"};
  const size_t num_parameters = contract::Parameters(model).size();
  StepSight sight;
  for (contract::TensorKind kind : {contract::TensorKind::kMaster, contract::TensorKind::kWeight}) {
    sight.of(kind).assign(num_parameters, {1, 1});
  }
  const RealStart start{std::vector<contract::RealParameterState>(num_parameters, {{2, 2}, {}, {}})};
  const StepSight seen = WithFrozenMastersOf(start, model, sight);
  for (size_t i = 0; i < num_parameters; ++i) {
    const double master = i == 1 ? 2 : 1;
    EXPECT_EQ(seen.of(contract::TensorKind::kMaster)[i], std::vector<double>(2, master)) << i;
    EXPECT_EQ(seen.of(contract::TensorKind::kWeight)[i], std::vector<double>(2, 1)) << i;
  }
}

}  // namespace
}  // namespace plumbline::conformance
