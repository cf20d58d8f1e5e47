// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "conformance/oracle/real_check.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;

RunDigest ExampleRun() {
  RunDigest run;
  const auto parameters = contract::Parameters(ExampleGpt2());
  for (int64_t step = 3; step < 6; ++step) {
    StepDigest digest;
    digest.step = step;
    digest.loss = 2.5;
    digest.tokens = 23;
    digest.real = contract::RealStep{{1e-3, 2e-3}, 0.75, false};
    for (TensorKind kind : contract::kTensorKinds) {
      for (const auto& parameter : parameters) {
        contract::Digest value;
        if (!parameter.frozen)
          value.AddBits(parameter.tensor_id, static_cast<uint64_t>(step * 10) + static_cast<uint64_t>(kind));
        digest.tensors[static_cast<int>(kind)].push_back(value);
      }
    }
    run.steps.push_back(digest);
  }
  return run;
}

RealResult Compare(const RunDigest& seen) { return CompareBitwise("zero 0 = 3", ExampleGpt2(), ExampleRun(), seen); }

TEST(CompareBitwise, PassesEqualRunsAndCounts) {
  const RealResult result = Compare(ExampleRun());
  EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << result.check.detail;
  EXPECT_EQ(result.check.name, "relation");
  EXPECT_GE(result.check.compared, 3 * 5 * static_cast<int64_t>(contract::Parameters(ExampleGpt2()).size()));
}

TEST(CompareBitwise, FindsOneBitOfAnyTensorInAnyStep) {
  const auto parameters = contract::Parameters(ExampleGpt2());
  for (size_t step = 0; step < 3; ++step) {
    for (TensorKind kind : contract::kTensorKinds) {
      for (size_t tensor = 0; tensor < parameters.size(); ++tensor) {
        RunDigest seen = ExampleRun();
        seen.steps[step].tensors[static_cast<int>(kind)][tensor].hash ^= 1;
        const RealResult result = Compare(seen);
        ASSERT_TRUE(result.divergence);
        EXPECT_EQ(result.divergence->step, static_cast<int64_t>(step) + 3);
        EXPECT_EQ(result.divergence->quantity, contract::Name(kind));
        EXPECT_EQ(result.divergence->tensor, parameters[tensor].name);
        EXPECT_EQ(result.check.detail.find("zero 0 = 3: step "), 0u) << result.check.detail;
      }
    }
  }
}

TEST(CompareBitwise, FindsEachNumberThatDiffers) {
  const auto quantity = [](auto change) {
    RunDigest seen = ExampleRun();
    change(seen.steps[1]);
    const RealResult result = Compare(seen);
    EXPECT_TRUE(result.divergence && result.divergence->step == 4);
    return result.divergence ? result.divergence->quantity : "";
  };
  EXPECT_EQ(quantity([](StepDigest& step) { step.loss = std::nextafter(step.loss, 9); }), "loss");
  EXPECT_EQ(quantity([](StepDigest& step) { step.loss = std::numeric_limits<double>::quiet_NaN(); }), "loss");
  EXPECT_EQ(quantity([](StepDigest& step) { ++step.tokens; }), "tokens");
  EXPECT_EQ(quantity([](StepDigest& step) { step.real->lr[1] *= 2; }), "lr");
  EXPECT_EQ(quantity([](StepDigest& step) { step.real->gradient_norm += 1e-12; }), "gradient_norm");
  EXPECT_EQ(quantity([](StepDigest& step) { step.real->skipped = true; }), "skipped");
  EXPECT_EQ(quantity([](StepDigest& step) { step.real.reset(); }), "lr");
  EXPECT_EQ(quantity([](StepDigest& step) { step.tensors[1].clear(); }), "moment");
  EXPECT_EQ(quantity([](StepDigest& step) { step.other_scalars.push_back({2, 0, 0, std::nullopt}); }), "replicas");
}

TEST(CompareBitwise, NamesTheRankThatDiffersFromTheFirst) {
  RunDigest seen = ExampleRun();
  seen.steps[2].other_digests.push_back({3, TensorKind::kWeight, 1, {}});
  const RealResult result = Compare(seen);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->tensor, "pos.weight");
  EXPECT_NE(result.check.detail.find("on rank 3"), std::string::npos) << result.check.detail;
}

// Numbers of a trace, where every NaN and Inf is the same null, and of a run that was put together otherwise.
TEST(CompareBitwise, TellsNumbersOfOtherClassesApartButNotNaNs) {
  const auto with = [](double number, double& (*place)(StepDigest&)) {
    RunDigest run = ExampleRun();
    place(run.steps[1]) = number;
    return run;
  };
  const double numbers[] = {0.0, -0.0, kSubnormal, 1.0, kInf, -kInf, kNaN};
  for (const auto place : {+[](StepDigest& step) -> double& { return step.loss; },
                           +[](StepDigest& step) -> double& { return step.real->gradient_norm; },
                           +[](StepDigest& step) -> double& { return step.real->lr[1]; }}) {
    for (const double& a : numbers) {
      for (const double& b : numbers) {
        const RealResult result = CompareBitwise("run to run", ExampleGpt2(), with(a, place), with(b, place));
        EXPECT_EQ(result.check.outcome, &a == &b ? CheckOutcome::kPass : CheckOutcome::kFail) << a << " and " << b;
      }
    }
    EXPECT_EQ(CompareBitwise("run to run", ExampleGpt2(), with(kNaN, place), with(kOtherNaN, place)).check.outcome,
              CheckOutcome::kPass);
  }
}

// Digests know no shape but the row-major index.
TEST(CompareBitwise, TellsOneValueFromItsCopiesAndATensorFromNone) {
  const auto run_of = [](int64_t count) {
    RunDigest run = ExampleRun();
    contract::Digest& digest = run.steps[0].tensors[static_cast<int>(TensorKind::kWeight)][0];
    digest = {};
    for (int64_t i = 0; i < count; ++i) digest.AddBits(i, std::bit_cast<uint32_t>(1.0f));
    return run;
  };
  for (int64_t a : {0, 1, 2, 12}) {
    for (int64_t b : {0, 1, 2, 12}) {
      EXPECT_EQ(CompareBitwise("broadcast", ExampleGpt2(), run_of(a), run_of(b)).check.outcome,
                a == b ? CheckOutcome::kPass : CheckOutcome::kFail)
          << a << " and " << b;
    }
  }
}

// The example run, with one more fp32 element of this value in a weight of its last step.
RunDigest RunWith(float value) {
  RunDigest run = ExampleRun();
  run.steps.back().tensors[static_cast<int>(TensorKind::kWeight)][1].AddBits(6, std::bit_cast<uint32_t>(value));
  return run;
}

TEST(CompareBitwise, TellsZerosDenormalsAndNaNsOfOtherBitsApart) {
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto other_nan = std::bit_cast<float>(std::bit_cast<uint32_t>(nan) ^ 1);
  const float values[] = {0.0f, -0.0f, kDenormal, -kDenormal, 2 * kDenormal, nan, -nan, other_nan};
  for (const float& a : values) {
    for (const float& b : values) {
      const RealResult result = CompareBitwise("run to run", ExampleGpt2(), RunWith(a), RunWith(b));
      EXPECT_EQ(result.check.outcome, &a == &b ? CheckOutcome::kPass : CheckOutcome::kFail) << a << " and " << b;
    }
  }
}

TEST(CompareBitwise, FindsOneBitInTenMillionElements) {
  constexpr int64_t kElements = 10'000'019;  // a prime
  contract::Digest whole;
  for (int64_t i = 0; i < kElements; ++i) whole.AddBits(i, contract::Mix(static_cast<uint64_t>(i)) >> 32);
  RunDigest expected = ExampleRun();
  expected.steps[1].tensors[static_cast<int>(TensorKind::kMaster)][2] = whole;
  EXPECT_EQ(CompareBitwise("big", ExampleGpt2(), expected, expected).check.outcome, CheckOutcome::kPass);
  for (int64_t element : {int64_t{0}, int64_t{1}, kElements / 2, kElements - 1}) {
    for (int bit : {0, 22, 31}) {
      // Digests are sums: an element's part is taken out, and put back with one bit changed.
      const uint64_t bits = contract::Mix(static_cast<uint64_t>(element)) >> 32;
      contract::Digest before, after;
      before.AddBits(element, bits);
      after.AddBits(element, bits ^ (uint64_t{1} << bit));
      RunDigest seen = expected;
      seen.steps[1].tensors[static_cast<int>(TensorKind::kMaster)][2].hash += after.hash - before.hash;
      const RealResult result = CompareBitwise("big", ExampleGpt2(), expected, seen);
      ASSERT_TRUE(result.divergence) << element << " " << bit;
      EXPECT_EQ(result.divergence->quantity, contract::Name(TensorKind::kMaster));
      EXPECT_EQ(result.divergence->step, 4);
    }
  }
}

TEST(CompareBitwise, FailsOnOtherStepsAndIsVacuousWithoutAny) {
  RunDigest seen = ExampleRun();
  seen.steps.pop_back();
  EXPECT_EQ(Compare(seen).check.outcome, CheckOutcome::kFail);
  seen = ExampleRun();
  for (StepDigest& step : seen.steps) ++step.step;
  EXPECT_EQ(Compare(seen).divergence->quantity, "step");
  EXPECT_EQ(CompareBitwise("nothing", ExampleGpt2(), {}, {}).check.outcome, CheckOutcome::kVacuous);
}

}  // namespace
}  // namespace plumbline::conformance
