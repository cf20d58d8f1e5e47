// SPDX-License-Identifier: Apache-2.0
// Sums of made-up shares, each of which bf16 holds: in fp32, in bf16 after every addition, and in fp32 and rounded at
// the end. How many sums in fp32 bf16 holds is measured here for shares of one size and sign, of other sizes, and of
// opposite signs: the number that the check rests on.
#include "conformance/oracle/accumulation_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/example_update.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using reports::CheckOutcome;
using Steps = std::vector<StepSight>;

constexpr int64_t kSteps = 8;
constexpr size_t kMatrix = 4;      // layers.0.attn.qkv.weight, 12 x 36
constexpr size_t kNormWeight = 2;  // layers.0.norm1.weight, 12
constexpr size_t kFrozen = 8;

enum class Sum { kFp32, kBf16, kRoundedAtTheEnd };

double Rounded(double value) { return ToBf16(static_cast<float>(value)); }

double Add(Sum sum, std::span<const double> shares) {
  float total = 0;
  for (const double share : shares) {
    total += static_cast<float>(share);
    if (sum == Sum::kBf16) total = ToBf16(total);
  }
  return sum == Sum::kFp32 ? total : ToBf16(total);
}

// Whether shares of a gradient passed through bf16 is up to the engine.
Steps MakeSteps(Sum sum, int num_shares, uint64_t seed, bool rounded_shares = true) {
  Steps steps(kSteps);
  const std::vector<contract::ParameterSpec> parameters = contract::Parameters(ExampleGpt2());
  for (int64_t s = 0; s < kSteps; ++s) {
    ExampleNumbers numbers(seed * 100 + static_cast<uint64_t>(s));
    steps[static_cast<size_t>(s)].step = s;
    steps[static_cast<size_t>(s)].storage = contract::DType::kBF16;
    for (const contract::ParameterSpec& parameter : parameters) {
      auto& values = steps[static_cast<size_t>(s)].of(TensorKind::kGradient).emplace_back();
      if (parameter.frozen) continue;
      for (int64_t i = 0; i < parameter.numel(); ++i) {
        std::vector<double> shares;
        for (int k = 0; k < num_shares; ++k) {
          const double share = parameter.name == "unused.weight" ? 0 : numbers.Normal();
          shares.push_back(rounded_shares ? Rounded(share) : share);
        }
        values.push_back(Add(sum, shares));
      }
    }
  }
  return steps;
}

RealResult Check(const Steps& candidate, const Steps& plain = MakeSteps(Sum::kFp32, 4, 77)) {
  return CheckAccumulation(ExampleGpt2(), plain, candidate);
}

CheckOutcome OutcomeOf(const Steps& candidate) { return Check(candidate).check.outcome; }

std::vector<double>& Gradient(StepSight& sight, size_t tensor) { return sight.of(TensorKind::kGradient)[tensor]; }

TEST(CheckAccumulation, TellsSumsInFp32FromSumsInBf16AndSumsThatAreRoundedOnce) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    for (int num_shares : {2, 3, 12}) {
      const RealResult right = Check(MakeSteps(Sum::kFp32, num_shares, seed));
      ASSERT_EQ(right.check.outcome, CheckOutcome::kPass) << seed << ", " << num_shares << ": " << right.check.detail;
      EXPECT_EQ(OutcomeOf(MakeSteps(Sum::kFp32, num_shares, seed, false)), CheckOutcome::kPass);
      for (Sum sum : {Sum::kBf16, Sum::kRoundedAtTheEnd}) {
        const RealResult wrong = Check(MakeSteps(sum, num_shares, seed));
        ASSERT_EQ(wrong.check.outcome, CheckOutcome::kFail) << seed << ", " << num_shares;
        // All that are looked at: neither the embedding of positions, nor what is unused or frozen.
        EXPECT_EQ(wrong.divergence->num_tensors, static_cast<int64_t>(TensorsWithManyShares(ExampleGpt2()).size()));
      }
    }
  }
}

// Two shares are the worst case: every further one leaves more bits. `likeness`: the correlation of the shares.
double ShareHeldInBf16(double likeness, double size) {
  ExampleNumbers numbers(5);
  int64_t held = 0;
  constexpr int64_t kSums = 50'000;
  for (int64_t i = 0; i < kSums; ++i) {
    const double first = numbers.Normal();
    const double second = likeness * first + std::sqrt(1 - likeness * likeness) * numbers.Normal();
    const double shares[] = {Rounded(first), Rounded(size * second)};
    const double sum = Add(Sum::kFp32, shares);
    held += sum == Rounded(sum);
  }
  return static_cast<double>(held) / kSums;
}

TEST(SumsOfTwoShares, AreHeldInBf16InLessThanThreeQuarters) {
  for (double size : {1.0, 0.7, 0.5, 0.1, 0.001}) {
    for (double likeness : {-0.7, -0.5, 0.0, 0.5, 0.9, 0.97}) {
      EXPECT_LT(ShareHeldInBf16(likeness, size), kMostSumsInStorage) << likeness << ", " << size;
    }
  }
  EXPECT_NEAR(ShareHeldInBf16(0, 1), 0.49, 0.05);
  // Where the shares all but cancel, or are equal, the check has no say, and the plain engine's share says so.
  EXPECT_GT(ShareHeldInBf16(-0.99, 1), kMostSumsInStorage);
  EXPECT_EQ(ShareHeldInBf16(1, 1), 1);
}

TEST(BitCount, BoundsTheTailOfTheBinomialDistribution) {
  // n, k, the tail P(X >= k) for p = 3/4, computed with 50 digits.
  const std::tuple<int64_t, int64_t, double> rows[] = {
      {73, 73, 7.55e-10}, {72, 72, 1.01e-9}, {100, 90, 1.37e-4}, {1000, 850, 8.79e-15}, {1000, 800, 1.09e-4}};
  for (const auto& [n, k, tail] : rows) {
    const BitCount count{n, k, n};
    EXPECT_GE(std::exp(count.log_chance()), 0.99 * tail) << n << ", " << k;
    EXPECT_LE(std::exp(count.log_chance()), 60 * tail) << n << ", " << k;
  }
  EXPECT_EQ((BitCount{100, 75, 100}).log_chance(), 0);
  EXPECT_EQ((BitCount{}).log_chance(), 0);
  EXPECT_TRUE((BitCount{73, 0, 73}).could_be_unlikely());
  EXPECT_FALSE((BitCount{1000, 0, 72}).could_be_unlikely()) << "equal magnitudes are one";
}

TEST(CheckAccumulation, FindsOneTensorAndItsFirstStep) {
  Steps seen = MakeSteps(Sum::kFp32, 3, 1);
  for (size_t s = 2; s < seen.size(); ++s) {
    for (double& value : Gradient(seen[s], kMatrix)) value = Rounded(value);
  }
  const RealResult result = Check(seen);
  ASSERT_EQ(result.check.outcome, CheckOutcome::kFail);
  EXPECT_EQ(result.divergence->tensor, "layers.0.attn.qkv.weight");
  EXPECT_EQ(result.divergence->quantity, "accumulation");
  EXPECT_EQ(result.divergence->step, 2);
  EXPECT_EQ(result.divergence->num_tensors, 1);
  EXPECT_EQ(result.check.detail.find("step 2: gradient of layers.0.attn.qkv.weight: bf16 holds "), 0u)
      << result.check.detail;
}

// A vector of twelve over eight steps is enough.
TEST(CheckAccumulation, FindsAVectorOfTwelve) {
  Steps seen = MakeSteps(Sum::kFp32, 2, 1);
  for (StepSight& sight : seen) {
    for (double& value : Gradient(sight, kNormWeight)) value = Rounded(value);
  }
  const RealResult result = Check(seen);
  ASSERT_EQ(result.check.outcome, CheckOutcome::kFail);
  EXPECT_EQ(result.divergence->tensor, "layers.0.norm1.weight");
}

TEST(CheckAccumulation, RejectsWhatIsNotFiniteAndDoesNotJudgeByAPlainEngineThatIsNot) {
  for (double odd : kNotFinite) {
    Steps seen = MakeSteps(Sum::kFp32, 3, 1);
    Gradient(seen[3], kMatrix)[5] = odd;
    const RealResult result = Check(seen);
    EXPECT_EQ(result.check.outcome, CheckOutcome::kFail);
    EXPECT_EQ(result.divergence->step, 3);
    Steps plain = MakeSteps(Sum::kFp32, 4, 77);
    for (auto& tensor : plain[3].of(TensorKind::kGradient)) std::fill(tensor.begin(), tensor.end(), odd);
    EXPECT_EQ(Check(MakeSteps(Sum::kFp32, 3, 1), plain).check.outcome, CheckOutcome::kVacuous);
    EXPECT_EQ(Check(seen, plain).check.outcome, CheckOutcome::kVacuous) << "fp32 does not hold it";
    Gradient(seen[2], kMatrix)[5] = odd;
    EXPECT_EQ(Check(seen, plain).divergence->step, 2) << "the plain engine's is finite there";
  }
}

TEST(CheckAccumulation, LeavesZerosOutAndTakesSubnormalNumbersByTheirBits) {
  const auto filled = [](double value) {
    Steps seen = MakeSteps(Sum::kFp32, 3, 1);
    for (StepSight& sight : seen) {
      for (size_t i = 0; i < 400; ++i) Gradient(sight, kMatrix)[i] = value;  // of 432
    }
    return CountBits(seen, kMatrix);
  };
  for (double zero : {0.0, -0.0}) EXPECT_EQ(filled(zero).not_zero, 32 * kSteps);
  EXPECT_LT(filled(kSubnormal).share(), 0.1);             // the last bit
  EXPECT_GT(filled(0x1p-133).share(), 0.9);               // the last bit of bf16
  EXPECT_LE(filled(0x1p-133).distinct, 32 * kSteps + 1);  // of 3456: not so many independent ones
}

TEST(CheckAccumulation, FailsWhereStepsTensorsOrElementsAreMissingOnEitherSide) {
  const Steps right = MakeSteps(Sum::kFp32, 3, 1);
  const std::function<void(Steps&)> changes[] = {
      [](Steps& steps) { steps.pop_back(); },
      [](Steps& steps) { steps[2].of(TensorKind::kGradient).pop_back(); },
      [](Steps& steps) { Gradient(steps[2], kMatrix).clear(); },
      [](Steps& steps) { Gradient(steps[2], kMatrix).pop_back(); },
      [](Steps& steps) { Gradient(steps[2], kMatrix).resize(1); },
      [](Steps& steps) { Gradient(steps[2], kFrozen).push_back(1); },
  };
  for (const auto& change : changes) {
    Steps changed = right;
    change(changed);
    EXPECT_EQ(Check(changed, right).check.outcome, CheckOutcome::kFail);
    EXPECT_EQ(Check(right, changed).check.outcome, CheckOutcome::kFail);
  }
}

TEST(CheckAccumulation, IsVacuousWithoutStepsOrEnoughNumbersAndWhereThePlainEngineHasNoBitsEither) {
  EXPECT_EQ(Check({}, {}).check.outcome, CheckOutcome::kVacuous);
  const Steps in_storage = MakeSteps(Sum::kBf16, 3, 1);
  EXPECT_EQ(Check(in_storage, in_storage).check.outcome, CheckOutcome::kVacuous);
  Steps few = in_storage;
  for (StepSight& sight : few) {
    for (auto& tensor : sight.of(TensorKind::kGradient)) std::fill(tensor.begin(), tensor.end(), 0.5);
  }
  EXPECT_EQ(OutcomeOf(few), CheckOutcome::kVacuous);
}

TEST(CheckAccumulation, IsOfSumsOverMicroBatchesOrRanksInBf16) {
  contract::RunConfig config;
  EXPECT_FALSE(AddsShares(config));
  config.storage = contract::DType::kBF16;
  EXPECT_FALSE(AddsShares(config)) << "the one share may have passed through bf16";
  config.accumulation_steps = 2;
  EXPECT_TRUE(AddsShares(config));
  config.accumulation_steps = 1;
  config.data_degree = 2;
  EXPECT_TRUE(AddsShares(config));
  config.storage = contract::DType::kF32;
  EXPECT_FALSE(AddsShares(config)) << "the check of gradients sees it";
}

TEST(TensorsWithManyShares, AreAllButThoseWhoseRowsBelongToTokensOrPositions) {
  contract::Gpt2Spec model = ExampleGpt2();
  const auto has = [&](size_t tensor) {
    const std::vector<size_t> tensors = TensorsWithManyShares(model);
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  };
  EXPECT_TRUE(has(0)) << "tied: the head's share";
  EXPECT_FALSE(has(1)) << "pos.weight";
  EXPECT_TRUE(has(kMatrix));
  EXPECT_FALSE(has(kFrozen));
  model.tied_head = false;
  EXPECT_FALSE(has(0));
}

}  // namespace
}  // namespace plumbline::conformance
