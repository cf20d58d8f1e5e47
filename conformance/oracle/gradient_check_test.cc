// SPDX-License-Identifier: Apache-2.0
// CheckGradients on made-up gradients with errors like those of engines: what must pass, what must fail and with which
// name, and how small a constant factor is found. Seeds are fixed.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "conformance/oracle/real_check.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::TensorKind;
using reports::CheckOutcome;

constexpr DType kPrecisions[] = {DType::kF32, DType::kBF16};

// In fp32 two orders of summation have errors of their own. In bf16 they share the roundings to storage: both plain
// engines then show nearly the same errors, which is the harder case.
Yardstick ExampleYardstick(DType storage, uint64_t seed) {
  const std::vector<StepSight> truth = ExampleTruth(seed);
  const uint64_t other = storage == DType::kBF16 ? 2 * seed : 2 * seed + 1;
  return {truth, ExampleEngine(truth, storage, 2 * seed), ExampleEngine(truth, storage, other)};
}

std::vector<StepSight> ExampleCandidate(const Yardstick& yardstick, DType storage, uint64_t seed) {
  return ExampleEngine(yardstick.truth, storage, 1'000'003 + seed);
}

std::vector<double>& Gradient(StepSight& sight, const std::string& tensor) {
  for (const auto& parameter : contract::Parameters(ExampleGpt2())) {
    if (parameter.name == tensor) return sight.of(TensorKind::kGradient)[static_cast<size_t>(parameter.tensor_id)];
  }
  throw std::logic_error(tensor);
}

RealResult Check(const Yardstick& yardstick, const std::vector<StepSight>& candidate) {
  return CheckGradients(ExampleGpt2(), yardstick, candidate);
}

void Scale(StepSight& sight, double factor) {
  for (auto& tensor : sight.of(TensorKind::kGradient)) {
    for (double& value : tensor) value *= factor;
  }
}

TEST(CheckGradients, PassesTheTruthAndCopiesOfThePlainEngineAndCounts) {
  for (DType storage : kPrecisions) {
    const Yardstick yardstick = ExampleYardstick(storage, 3);
    EXPECT_EQ(Check(yardstick, yardstick.plain).check.outcome, CheckOutcome::kPass);
    const RealResult result = Check(yardstick, yardstick.truth);
    EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << result.check.detail;
    int64_t numel = 0;
    for (const auto& parameter : contract::Parameters(ExampleGpt2())) numel += parameter.frozen ? 0 : parameter.numel();
    EXPECT_GE(result.check.compared, 4 * numel);
    EXPECT_EQ(result.check.name, "gradient");
  }
}

TEST(CheckGradients, HoldsEnginesThatMakeNoErrorToHalfAnUlp) {
  const std::vector<StepSight> truth = ExampleTruth(5);
  const Yardstick yardstick{truth, truth, truth};
  EXPECT_EQ(Check(yardstick, truth).check.outcome, CheckOutcome::kPass);
  // All but the key bias, which is null: half an ulp of nothing excuses nothing.
  const auto scaled = [&](double factor) {
    std::vector<StepSight> candidate = truth;
    for (StepSight& sight : candidate) {
      const std::vector<double> bias = Gradient(sight, "layers.0.attn.qkv.bias");
      Scale(sight, factor);
      Gradient(sight, "layers.0.attn.qkv.bias") = bias;
    }
    return Check(yardstick, candidate).check.outcome;
  };
  EXPECT_EQ(scaled(1 + 0x1p-25), CheckOutcome::kPass);
  EXPECT_EQ(scaled(1 + 0x1p-23), CheckOutcome::kFail);
}

TEST(CheckGradients, GivesNoFalseAlarmInTwoThousandRepetitions) {
  for (DType storage : kPrecisions) {
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      const Yardstick yardstick = ExampleYardstick(storage, seed);
      const RealResult result = Check(yardstick, ExampleCandidate(yardstick, storage, seed));
      ASSERT_EQ(result.check.outcome, CheckOutcome::kPass) << "seed " << seed << ": " << result.check.detail;
    }
  }
}

TEST(CheckGradients, GivesNoFalseAlarmForAnEngineWithThreeTimesTheRoundingsInBf16) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Yardstick yardstick = ExampleYardstick(DType::kBF16, seed);
    std::vector<StepSight> candidate = yardstick.truth;
    for (uint64_t part = 0; part < 3; ++part) {
      const auto noisy = ExampleEngine(yardstick.truth, DType::kBF16, 9'000'000 + 3 * seed + part);
      for (size_t s = 0; s < candidate.size(); ++s) {
        candidate[s].storage = DType::kBF16;
        auto& tensors = candidate[s].of(TensorKind::kGradient);
        for (size_t t = 0; t < tensors.size(); ++t) {
          for (size_t i = 0; i < tensors[t].size(); ++i) {
            tensors[t][i] +=
                noisy[s].of(TensorKind::kGradient)[t][i] - yardstick.truth[s].of(TensorKind::kGradient)[t][i];
          }
        }
      }
    }
    const RealResult result = Check(yardstick, candidate);
    ASSERT_EQ(result.check.outcome, CheckOutcome::kPass) << "seed " << seed << ": " << result.check.detail;
  }
}

struct Mistake {
  const char* title;
  const char* tensor;  // that must be named
  const char* region;  // part of the detail
  std::function<void(StepSight&, const StepSight& truth)> make;
};

std::vector<double> ExampleMicroBatch(const std::vector<double>& truth, double share) {
  ExampleNumbers numbers(4711);
  double squares = 0;
  for (double value : truth) squares += value * value;
  const double size = std::sqrt(squares / static_cast<double>(truth.size()));
  std::vector<double> part;
  for (double value : truth) part.push_back(share * (value + size * numbers.Normal()));
  return part;
}

void AddTo(StepSight& sight, const std::string& tensor, const std::vector<double>& part, double factor) {
  std::vector<double>& values = Gradient(sight, tensor);
  for (size_t i = 0; i < values.size(); ++i) values[i] += factor * part[i];
}

void ScaleTensor(StepSight& sight, const std::string& tensor, double factor) {
  for (double& value : Gradient(sight, tensor)) value *= factor;
}

// Columns of a [rows, 36] tensor (q, k, v of 12 each; heads of 4).
void ScaleColumns(StepSight& sight, const std::string& tensor, size_t first, size_t end, double factor) {
  std::vector<double>& values = Gradient(sight, tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 36 >= first && i % 36 < end) values[i] *= factor;
  }
}

const std::vector<Mistake>& Mistakes() {
  static const std::vector<Mistake> mistakes = {
      {"one tensor divided by two ranks", "layers.0.mlp.up.weight", "slope of the error is 0.",
       [](StepSight& sight, const StepSight&) { ScaleTensor(sight, "layers.0.mlp.up.weight", 0.5); }},
      {"one tensor divided by eight ranks", "pos.weight", "pos.weight",
       [](StepSight& sight, const StepSight&) { ScaleTensor(sight, "pos.weight", 0.125); }},
      {"a bias not averaged over three accumulation steps", "layers.0.attn.out.bias", "slope of the error is ",
       [](StepSight& sight, const StepSight&) { ScaleTensor(sight, "layers.0.attn.out.bias", 3); }},
      {"everything twice", "norm.bias", "18 regions are beyond",
       [](StepSight& sight, const StepSight&) { Scale(sight, 2); }},
      {"everything with the other sign", "norm.bias", "18 regions are beyond",
       [](StepSight& sight, const StepSight&) { Scale(sight, -1); }},
      {"one of eight micro-batches is missing", "layers.0.mlp.down.weight", "layers.0.mlp.down.weight",
       [](StepSight& sight, const StepSight& truth) {
         StepSight copy = truth;
         AddTo(sight, "layers.0.mlp.down.weight", ExampleMicroBatch(Gradient(copy, "layers.0.mlp.down.weight"), 0.125),
               -1);
       }},
      {"one head of the query part is zero", "layers.0.attn.qkv.weight", "layers.0.attn.qkv.weight (q part)",
       [](StepSight& sight, const StepSight&) { ScaleColumns(sight, "layers.0.attn.qkv.weight", 4, 8, 0); }},
      {"one head of the value bias is zero", "layers.0.attn.qkv.bias", "layers.0.attn.qkv.bias (v part)",
       [](StepSight& sight, const StepSight&) { ScaleColumns(sight, "layers.0.attn.qkv.bias", 28, 32, 0); }},
      {"key and value are swapped", "layers.0.attn.qkv.weight", "layers.0.attn.qkv.weight (v part)",
       [](StepSight& sight, const StepSight&) {
         std::vector<double>& values = Gradient(sight, "layers.0.attn.qkv.weight");
         for (size_t i = 0; i < values.size(); ++i) {
           if (i % 36 >= 12 && i % 36 < 24) std::swap(values[i], values[i + 12]);
         }
       }},
      {"the key bias has a gradient", "layers.0.attn.qkv.bias", "layers.0.attn.qkv.bias (k part)",
       [](StepSight& sight, const StepSight&) { Gradient(sight, "layers.0.attn.qkv.bias")[13] = 0.01; }},
      {"the largest element is wrong by 30 %", "embed.weight", "embed.weight",
       [](StepSight& sight, const StepSight&) {
         std::vector<double>& values = Gradient(sight, "embed.weight");
         *std::max_element(values.begin(), values.end()) *= 1.3;
       }},
      {"a NaN", "layers.0.norm1.bias", "element 3 is NaN",
       [](StepSight& sight, const StepSight&) { Gradient(sight, "layers.0.norm1.bias")[3] = kNaN; }},
      {"an Inf", "embed.weight", "element 0 is Inf",
       [](StepSight& sight, const StepSight&) { Gradient(sight, "embed.weight")[0] = HUGE_VAL; }},
      {"the unused parameter has a gradient, however small", "unused.weight", "and so are both plain engines",
       [](StepSight& sight, const StepSight&) { Gradient(sight, "unused.weight")[14] = 1e-30; }},
      {"a tensor is zero", "layers.0.mlp.up.bias", "the gradient is 0 times the truth",
       [](StepSight& sight, const StepSight&) { ScaleTensor(sight, "layers.0.mlp.up.bias", 0); }},
      {"rows are shifted by one", "pos.weight", "pos.weight",
       [](StepSight& sight, const StepSight&) {
         std::vector<double>& values = Gradient(sight, "pos.weight");
         std::rotate(values.begin(), values.begin() + 12, values.end());
       }},
  };
  return mistakes;
}

TEST(CheckGradients, FindsEachMistakeInEachPrecisionAndNamesTensorAndRegion) {
  for (DType storage : kPrecisions) {
    for (const Mistake& mistake : Mistakes()) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const Yardstick yardstick = ExampleYardstick(storage, seed);
        std::vector<StepSight> candidate = ExampleCandidate(yardstick, storage, seed);
        for (size_t s = 0; s < candidate.size(); ++s) mistake.make(candidate[s], yardstick.truth[s]);
        const RealResult result = Check(yardstick, candidate);
        ASSERT_EQ(result.check.outcome, CheckOutcome::kFail) << mistake.title << ", seed " << seed;
        ASSERT_TRUE(result.divergence) << mistake.title;
        EXPECT_EQ(result.divergence->tensor, mistake.tensor) << mistake.title << ": " << result.check.detail;
        EXPECT_EQ(result.divergence->quantity, "gradient");
        EXPECT_NE(result.check.detail.find(mistake.region), std::string::npos)
            << mistake.title << ": " << result.check.detail;
      }
    }
  }
}

// The same where one number alone sees it.
TEST(CheckGradients, FindsManySmallErrorsByTheNormAndASingleOneByTheTail) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Yardstick yardstick = ExampleYardstick(DType::kBF16, seed);
    const auto check = [&](const std::function<void(std::vector<double>&, const std::vector<double>&)>& make) {
      std::vector<StepSight> candidate = ExampleCandidate(yardstick, DType::kBF16, seed);
      StepSight truth = yardstick.truth[1];
      make(Gradient(candidate[1], "embed.weight"), Gradient(truth, "embed.weight"));
      return Check(yardstick, candidate).check;
    };
    const reports::CheckRecord noisy = check([](std::vector<double>& values, const std::vector<double>& truth) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = truth[i] + 6 * (values[i] - truth[i]);
    });
    EXPECT_NE(noisy.detail.find("embed.weight: norm of the error"), std::string::npos) << noisy.detail;
    const reports::CheckRecord single = check([](std::vector<double>& values, const std::vector<double>& truth) {
      double squares = 0;
      for (double value : truth) squares += value * value;
      values[100] = truth[100] + 0.2 * std::sqrt(squares / static_cast<double>(truth.size()));
    });
    EXPECT_NE(single.detail.find("embed.weight: tail of the error"), std::string::npos) << single.detail;
  }
}

// Softmax does not see the key bias: its gradient is rounding, and a zero in it is one by chance. Elsewhere a zero is a
// sum without terms.
TEST(CheckGradients, DemandsAZeroWhereTheGradientIsMoreThanRounding) {
  for (DType storage : kPrecisions) {
    for (const GradientRegion& region : GradientRegions(ExampleGpt2())) {
      const bool key_bias = region.name == "layers.0.attn.qkv.bias (k part)";
      if (!key_bias && region.name != "embed.weight") continue;
      Yardstick yardstick = ExampleYardstick(storage, 3);
      const std::vector<StepSight> candidate = ExampleCandidate(yardstick, storage, 3);
      size_t first = 0;
      bool found = false;
      ForEachElement(region, [&](size_t i) {
        if (!found) first = i;
        found = true;
      });
      const size_t tensor = region.tensor;
      ASSERT_NE(candidate[0].of(TensorKind::kGradient)[tensor][first], 0);
      yardstick.truth[0].of(TensorKind::kGradient)[tensor][first] = 0;
      yardstick.plain[0].of(TensorKind::kGradient)[tensor][first] = 0;
      yardstick.other_plain[0].of(TensorKind::kGradient)[tensor][first] = 0;
      const RealResult result = Check(yardstick, candidate);
      EXPECT_EQ(result.check.outcome, key_bias ? CheckOutcome::kPass : CheckOutcome::kFail) << result.check.detail;
    }
  }
}

// A live region whose plain errors are as large as its truth, as small vectors' are in bf16: its zeros are sums without
// terms all the same.
TEST(CheckGradients, DemandsAZeroWhereThePlainEnginesAreNoiseButTheTruthIsNot) {
  Yardstick yardstick = ExampleYardstick(DType::kBF16, 3);
  std::vector<StepSight> candidate = ExampleCandidate(yardstick, DType::kBF16, 3);
  const std::string name = "norm.bias";
  for (std::vector<StepSight>* sights : {&yardstick.plain, &yardstick.other_plain}) {
    ScaleTensor((*sights)[0], name, 3);
    Gradient((*sights)[0], name)[4] = 0;
  }
  Gradient(yardstick.truth[0], name)[4] = 0;
  Gradient(candidate[0], name)[4] = 0;
  EXPECT_EQ(Check(yardstick, candidate).check.outcome, CheckOutcome::kPass) << Check(yardstick, candidate).check.detail;
  Gradient(candidate[0], name)[4] = 1e-9;
  EXPECT_NE(Check(yardstick, candidate).check.detail.find("and so are both plain engines"), std::string::npos);
}

// A zero of any sign is zero; what is not quite zero is not, where zero is demanded, and is near it elsewhere.
TEST(CheckGradients, TakesMinusZeroForZeroAndSubnormalNumbersForNearlyZero) {
  for (DType storage : kPrecisions) {
    Yardstick yardstick = ExampleYardstick(storage, 3);
    std::vector<StepSight> candidate = ExampleCandidate(yardstick, storage, 3);
    const auto outcome = [&](const char* tensor, double truth, double seen) {
      for (std::vector<StepSight>* sights : {&yardstick.truth, &yardstick.plain, &yardstick.other_plain}) {
        Gradient((*sights)[1], tensor)[2] = truth;
      }
      Gradient(candidate[1], tensor)[2] = seen;
      return Check(yardstick, candidate).check.outcome;
    };
    for (const char* tensor : {"unused.weight", "embed.weight"}) {
      for (double truth : {0.0, -0.0}) {
        for (double seen : {0.0, -0.0}) EXPECT_EQ(outcome(tensor, truth, seen), CheckOutcome::kPass) << tensor;
        for (double seen : {kSubnormal, -kSubnormal, 5e-324}) {
          EXPECT_EQ(outcome(tensor, truth, seen), CheckOutcome::kFail) << tensor << " " << seen;
        }
        EXPECT_EQ(outcome(tensor, truth, 0.0), CheckOutcome::kPass) << tensor;
      }
    }
    for (double seen : {0.0, -0.0, kSubnormal, -kSubnormal}) {
      EXPECT_EQ(outcome("embed.weight", kSubnormal, seen), CheckOutcome::kPass) << seen;
    }
  }
}

TEST(CheckGradients, FailsACandidateThatIsNotFiniteAndIsVacuousWhereAYardstickIsNot) {
  for (DType storage : kPrecisions) {
    for (double odd : kNotFinite) {
      const Yardstick good = ExampleYardstick(storage, 3);
      std::vector<StepSight> candidate = ExampleCandidate(good, storage, 3);
      Gradient(candidate[2], "pos.weight")[7] = odd;
      ASSERT_TRUE(Check(good, candidate).divergence) << odd;
      EXPECT_EQ(Check(good, candidate).divergence->tensor, "pos.weight");
      for (auto line : {&Yardstick::truth, &Yardstick::plain, &Yardstick::other_plain}) {
        Yardstick broken = good;
        Gradient((broken.*line)[2], "pos.weight")[7] = odd;
        EXPECT_EQ(Check(broken, candidate).check.outcome, CheckOutcome::kVacuous) << odd;
      }
    }
  }
}

// Squares of such gradients overflow or underflow in fp64; regions must not become null by that.
TEST(CheckGradients, FindsAHalvedGradientOfAnySize) {
  for (double size : {1e-200, 1.0, 1e200}) {
    Yardstick yardstick = ExampleYardstick(DType::kF32, 3);
    std::vector<StepSight> candidate = ExampleCandidate(yardstick, DType::kF32, 3);
    for (auto* sights : {&yardstick.truth, &yardstick.plain, &yardstick.other_plain, &candidate}) {
      for (StepSight& sight : *sights) Scale(sight, size);
    }
    EXPECT_EQ(Check(yardstick, candidate).check.outcome, CheckOutcome::kPass) << size;
    for (StepSight& sight : candidate) Scale(sight, 0.5);
    EXPECT_EQ(Check(yardstick, candidate).check.outcome, CheckOutcome::kFail) << size;
  }
}

TEST(CheckGradients, FindsAMistakeInOneStepOnlyAndNamesTheStep) {
  for (DType storage : kPrecisions) {
    for (size_t step = 0; step < std::size(kExampleRealSteps); ++step) {
      const Yardstick yardstick = ExampleYardstick(storage, 11);
      std::vector<StepSight> candidate = ExampleCandidate(yardstick, storage, 11);
      ScaleTensor(candidate[step], "layers.0.mlp.up.weight", 2);
      const RealResult result = Check(yardstick, candidate);
      ASSERT_TRUE(result.divergence);
      EXPECT_EQ(result.divergence->step, kExampleRealSteps[step]);
      EXPECT_EQ(result.divergence->tensor, "layers.0.mlp.up.weight");
    }
  }
}

TEST(CheckGradients, NamesTheRegionThatIsFarthestBeyondItsLimitBesideTheOneNearestToTheCause) {
  for (DType storage : kPrecisions) {
    const Yardstick yardstick = ExampleYardstick(storage, 11);
    std::vector<StepSight> candidate = ExampleCandidate(yardstick, storage, 11);
    ScaleTensor(candidate[0], "embed.weight", 1e6);
    ScaleTensor(candidate[0], "layers.0.mlp.up.weight", 2);
    const RealResult result = Check(yardstick, candidate);
    ASSERT_TRUE(result.divergence);
    EXPECT_EQ(result.divergence->tensor, "layers.0.mlp.up.weight");
    EXPECT_NE(result.check.detail.find(" 2 regions are beyond their limits, farthest the "), std::string::npos)
        << result.check.detail;
    EXPECT_NE(result.check.detail.find(" of embed.weight, "), std::string::npos) << result.check.detail;
  }
}

TEST(CheckGradients, FindsEachSingleElementThatIsWrongByThirtyPercentInFp32) {
  const Yardstick yardstick = ExampleYardstick(DType::kF32, 2);
  const std::vector<StepSight> candidate = ExampleCandidate(yardstick, DType::kF32, 2);
  int64_t num_tried = 0;
  for (const GradientRegion& region : GradientRegions(ExampleGpt2())) {
    double size = 0;
    ForEachElement(region, [&](size_t i) {
      size = std::max(size, std::abs(yardstick.truth[0].of(TensorKind::kGradient)[region.tensor][i]));
    });
    if (size < 1e-12) continue;
    ForEachElement(region, [&](size_t i) {
      // Elements a thousand times smaller than the largest are below what the tail of a region shows.
      if (i % 17 != 0 || std::abs(yardstick.truth[0].of(TensorKind::kGradient)[region.tensor][i]) < 1e-3 * size) return;
      std::vector<StepSight> wrong = candidate;
      wrong[0].of(TensorKind::kGradient)[region.tensor][i] *= 1.3;
      ++num_tried;
      EXPECT_EQ(Check(yardstick, wrong).check.outcome, CheckOutcome::kFail) << region.name << " " << i;
    });
  }
  EXPECT_GT(num_tried, 50);
}

// The smallest eps for which everything times 1 + eps fails.
double SmallestFactorFound(DType storage, uint64_t seed) {
  const Yardstick yardstick = ExampleYardstick(storage, seed);
  const std::vector<StepSight> candidate = ExampleCandidate(yardstick, storage, seed);
  double passes = 0;
  double fails = 1;
  for (int i = 0; i < 40; ++i) {
    const double eps = passes == 0 ? fails / 4 : std::sqrt(passes * fails);
    std::vector<StepSight> wrong = candidate;
    for (StepSight& sight : wrong) Scale(sight, 1 + eps);
    const bool found = Check(yardstick, wrong).check.outcome == CheckOutcome::kFail;
    (found ? fails : passes) = eps;
    if (passes > 0 && fails / passes < 1.01) break;
  }
  return fails;
}

TEST(CheckGradients, FindsASmallConstantFactorOnEverything) {
  double worst[2] = {};
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (size_t p = 0; p < 2; ++p) worst[p] = std::max(worst[p], SmallestFactorFound(kPrecisions[p], seed));
  }
  std::cout << "smallest factor found, worst of 10 seeds: fp32 1 + " << worst[0] << ", bf16 1 + " << worst[1] << "\n";
  EXPECT_LT(worst[0], 3e-6);
  EXPECT_LT(worst[1], 0.03);
}

TEST(CheckGradients, IsVacuousWhereNothingCouldBeSeen) {
  const Yardstick yardstick = ExampleYardstick(DType::kF32, 1);
  const auto first = [](const std::vector<StepSight>& sights) { return std::vector<StepSight>{sights.front()}; };
  const Yardstick one_step{first(yardstick.truth), first(yardstick.plain), first(yardstick.other_plain)};
  EXPECT_EQ(Check(one_step, first(yardstick.plain)).check.outcome, CheckOutcome::kVacuous);
  EXPECT_EQ(Check(Yardstick{}, {}).check.outcome, CheckOutcome::kVacuous);

  // Errors have no scale where the truth is zero, whatever the plain engines make of it.
  Yardstick still = yardstick;
  Scale(still.truth[1], 0);
  EXPECT_EQ(Check(still, yardstick.plain).check.outcome, CheckOutcome::kVacuous);

  Yardstick wild = yardstick;
  for (StepSight& sight : wild.plain) Scale(sight, 2);
  for (StepSight& sight : wild.other_plain) Scale(sight, 2);
  const RealResult result = Check(wild, yardstick.truth);
  EXPECT_EQ(result.check.outcome, CheckOutcome::kVacuous);
  EXPECT_NE(result.check.detail.find("a gradient of zero would pass"), std::string::npos) << result.check.detail;
}

TEST(CheckGradients, FailsWhenStepsOrTensorsAreMissing) {
  const Yardstick yardstick = ExampleYardstick(DType::kF32, 1);
  std::vector<StepSight> candidate = yardstick.plain;
  candidate.pop_back();
  EXPECT_EQ(Check(yardstick, candidate).check.outcome, CheckOutcome::kFail);
  candidate = yardstick.plain;
  candidate[1].step = 5;
  EXPECT_EQ(Check(yardstick, candidate).check.outcome, CheckOutcome::kFail);
  candidate = yardstick.plain;
  for (const auto change : {+[](StepSight& sight) { sight.of(TensorKind::kGradient)[2].pop_back(); },
                            +[](StepSight& sight) { sight.of(TensorKind::kGradient)[2].push_back(0); },
                            +[](StepSight& sight) { sight.of(TensorKind::kGradient)[2].clear(); },
                            +[](StepSight& sight) { sight.of(TensorKind::kGradient)[2].resize(1); },
                            +[](StepSight& sight) { sight.of(TensorKind::kGradient).resize(2); }}) {
    candidate = yardstick.plain;
    change(candidate[3]);
    EXPECT_NE(Check(yardstick, candidate).check.detail.find("no whole gradient of layers.0.norm1.weight in step 9"),
              std::string::npos);
    for (auto line : {&Yardstick::truth, &Yardstick::plain, &Yardstick::other_plain}) {
      Yardstick broken = yardstick;
      change((broken.*line)[3]);
      EXPECT_EQ(Check(broken, yardstick.plain).check.outcome, CheckOutcome::kFail);
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
