// SPDX-License-Identifier: Apache-2.0
// The metamorphic checks and their guards on made-up runs: what follows from each other passes, and one unit, bit,
// element or class that does not fails; without a gradient they are vacuous.
#include "conformance/oracle/metamorphic_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/oracle/metamorphic_guard.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

namespace plumbline::conformance {
namespace {

using contract::Digest;
using contract::TensorKind;
using reports::CheckOutcome;

constexpr int64_t kBatch = 6;

void ExpectFails(const RealResult& result, const std::string& part) {
  EXPECT_EQ(result.check.outcome, CheckOutcome::kFail) << part;
  EXPECT_EQ(result.check.name, "metamorphic");
  EXPECT_NE(result.check.detail.find(part), std::string::npos) << result.check.detail;
  EXPECT_TRUE(result.divergence) << part;
}

void ExpectPasses(const RealResult& result) {
  EXPECT_EQ(result.check.outcome, CheckOutcome::kPass) << result.check.detail;
  EXPECT_EQ(result.check.name, "metamorphic");
  EXPECT_GT(result.check.compared, 0);
  EXPECT_FALSE(result.divergence);
}

void ExpectVacuous(const RealResult& result) {
  EXPECT_EQ(result.check.outcome, CheckOutcome::kVacuous) << result.check.detail;
  EXPECT_FALSE(result.divergence);
}

void ExpectAllNoticed(const Guard& guard, int64_t planted) {
  EXPECT_EQ(guard.Check().outcome, CheckOutcome::kPass) << guard.Check().detail;
  EXPECT_EQ(guard.Check().compared, planted);
}

// ---- Family exact

RunDigest ExampleRun() { return MergeTraces(ExampleCase(2), ExampleTraces(2, 0)).run; }

std::vector<Digest>& GradientsOf(RunDigest& run, size_t step) {
  return run.steps[step].tensors[static_cast<int>(TensorKind::kGradient)];
}

RunDigest WithoutGradients(RunDigest run) {
  for (size_t step = 0; step < run.steps.size(); ++step) {
    for (Digest& digest : GradientsOf(run, step)) digest = {};
  }
  return run;
}

TEST(CheckSameRuns, FailsForOneUnitOfAnyKindInAnyStepAndForEveryNumber) {
  const RunDigest whole = ExampleRun();
  const auto check = [&](const RunDigest& seen) {
    return CheckSameRuns("permuted", ExampleCase(2).model, whole, seen);
  };
  ExpectPasses(check(whole));
  for (size_t step = 0; step < whole.steps.size(); ++step) {
    for (TensorKind kind : {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kMaster, TensorKind::kWeight}) {
      RunDigest seen = whole;
      seen.steps[step].tensors[static_cast<int>(kind)][1].Add(2, 1);
      ExpectFails(check(seen), "permuted: step " + std::to_string(step) + ": " + std::string(contract::Name(kind)));
    }
  }
  RunDigest seen = whole;
  ++seen.steps.back().tokens;
  ExpectFails(check(seen), "tokens");
  seen = whole;
  seen.steps.front().loss = kNaN;
  ExpectFails(check(seen), "loss");
  seen = whole;
  seen.steps.pop_back();
  EXPECT_EQ(check(seen).check.outcome, CheckOutcome::kFail);
  Guard guard;
  GuardSameRuns("permuted", ExampleCase(2).model, whole, whole, guard);
  ExpectAllNoticed(guard, 4);
}

TEST(CheckSameRuns, IsVacuousWithoutStepsOrGradients) {
  const contract::ModelSpec model = ExampleCase(2).model;
  ExpectVacuous(CheckSameRuns("permuted", model, RunDigest{}, RunDigest{}));
  const RunDigest still = WithoutGradients(ExampleRun());
  ExpectVacuous(CheckSameRuns("permuted", model, still, still));
  RunDigest one_still = ExampleRun();
  for (Digest& digest : GradientsOf(one_still, 1)) digest = {};
  ExpectVacuous(CheckSameRuns("permuted", model, one_still, one_still));
}

// One step whose gradients are sums of two parts', negative ones among them; and the parts.
struct SplitRun {
  RunDigest whole, first, second;
};

SplitRun ExampleSplit() {
  SplitRun split;
  RunDigest run = ExampleRun();
  run.steps.resize(1);
  split.whole = split.first = split.second = WithoutGradients(run);
  const auto parameters = contract::Parameters(ExampleCase(2).model);
  for (size_t tensor = 0; tensor < parameters.size(); ++tensor) {
    for (int64_t i = 0; i < parameters[tensor].numel(); ++i) {
      const int64_t one = ExampleValue(0, 1, static_cast<int64_t>(tensor), i), two = 7 - 3 * i;
      GradientsOf(split.first, 0)[tensor].Add(i, one);
      GradientsOf(split.second, 0)[tensor].Add(i, two);
      GradientsOf(split.whole, 0)[tensor].Add(i, one + two);
    }
  }
  split.first.steps[0].tokens = split.second.steps[0].tokens = 4;
  split.whole.steps[0].tokens = 8;
  split.first.steps[0].loss = 5;
  split.second.steps[0].loss = 11;
  split.whole.steps[0].loss = 16;
  return split;
}

RealResult Check(const SplitRun& split) {
  return CheckSplitRuns(ExampleCase(2).model, split.whole, split.first, split.second);
}

TEST(CheckSplitRuns, AddsUpAndFailsForOneUnitInAnyTensorOfAnyRun) {
  const SplitRun split = ExampleSplit();
  ExpectPasses(Check(split));
  for (RunDigest SplitRun::*run : {&SplitRun::whole, &SplitRun::first, &SplitRun::second}) {
    for (size_t tensor = 0; tensor < contract::Parameters(ExampleCase(2).model).size(); ++tensor) {
      SplitRun seen = split;
      GradientsOf(seen.*run, 0)[tensor].Add(1, 1);
      ExpectFails(Check(seen), "split: step 0: sum of the gradient of ");
    }
    SplitRun seen = split;
    GradientsOf(seen.*run, 0)[0].Add(1, 1);
    GradientsOf(seen.*run, 0)[0].Add(2, -1);  // the plain sum is as before
    ExpectFails(Check(seen), "split: step 0: indexed sum of the gradient of ");
    seen = split;
    (seen.*run).steps[0].loss += 1;
    ExpectFails(Check(seen), "loss");
    for (double odd : kNotFinite) {
      (seen.*run).steps[0].loss = odd;
      ExpectFails(Check(seen), "loss");
    }
    seen = split;
    GradientsOf(seen.*run, 0).pop_back();
    ExpectFails(Check(seen), "tensors");
    seen = split;
    ++(seen.*run).steps[0].tokens;
    ExpectFails(Check(seen), "tokens");
    seen = split;
    (seen.*run).steps.clear();
    ExpectFails(Check(seen), "steps");
  }
  Guard guard;
  GuardSplitRuns(ExampleCase(2).model, split.whole, split.first, split.second, guard);
  ExpectAllNoticed(guard, 4);
}

TEST(CheckSplitRuns, IsVacuousWhereAPartHasNoGradient) {
  SplitRun split = ExampleSplit();
  split.second = WithoutGradients(split.second);
  split.whole.steps[0].tensors[0] = split.first.steps[0].tensors[0];
  ExpectVacuous(Check(split));
}

// ---- Family gpt2

// What can be missing from a step's gradient, or be too much.
using Change = void (*)(StepSight&);
const Change kOtherSizes[] = {[](StepSight& sight) { sight.of(TensorKind::kGradient)[2].pop_back(); },
                              [](StepSight& sight) { sight.of(TensorKind::kGradient)[2].push_back(0); },
                              [](StepSight& sight) { sight.of(TensorKind::kGradient)[2].clear(); },
                              [](StepSight& sight) { sight.of(TensorKind::kGradient)[2].resize(1); },
                              [](StepSight& sight) { sight.of(TensorKind::kGradient).pop_back(); },
                              [](StepSight& sight) { sight.of(TensorKind::kGradient).clear(); }};

const contract::ModelSpec kModel = ExampleGpt2();

StepSight ExampleSight(uint64_t seed = 1) { return ExampleTruth(seed).front(); }

double& ElementOf(StepSight& sight, size_t tensor, size_t i) { return sight.of(TensorKind::kGradient)[tensor][i]; }

double LargestOf(const StepSight& sight) {
  double largest = 0;
  for (const auto& tensor : sight.of(TensorKind::kGradient)) {
    for (double value : tensor) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// 2 n u of the largest gradient, n = layers (B T + width + hidden + vocabulary).
double LimitOf(const StepSight& sight) { return 2 * (1 * (6 * 7 + 12 + 20 + 19)) * 0x1p-24 * LargestOf(sight); }

StepSight ZeroSight() {
  StepSight sight = ExampleSight();
  for (auto& tensor : sight.of(TensorKind::kGradient)) std::fill(tensor.begin(), tensor.end(), 0);
  return sight;
}

TEST(CheckNearSteps, AllowsTheLimitAndNothingBeyond) {
  const StepSight whole = ExampleSight();
  const double limit = LimitOf(whole);
  const auto check = [&](const StepSight& seen) { return CheckNearSteps("accumulated", kModel, kBatch, whole, seen); };
  ExpectPasses(check(whole));
  for (size_t tensor : {0u, 5u, 14u}) {
    for (double sign : {-1.0, 1.0}) {
      StepSight seen = whole;
      ElementOf(seen, tensor, 0) += sign * 0.999 * limit;
      ExpectPasses(check(seen));
      ElementOf(seen, tensor, 0) = ElementOf(const_cast<StepSight&>(whole), tensor, 0) + sign * 1.001 * limit;
      ExpectFails(check(seen), "accumulated: step 0: gradient of ");
    }
    for (double value : {kNaN, kInf, -kInf}) {
      StepSight seen = whole;
      ElementOf(seen, tensor, 1) = value;
      ExpectFails(check(seen), "gradient");
    }
  }
  StepSight seen = whole;
  seen.loss *= 1 + 1e-4;
  ExpectFails(check(seen), "loss");
  seen.loss = kNaN;
  ExpectFails(check(seen), "loss");
  seen = whole;
  ++seen.tokens;
  ExpectFails(check(seen), "tokens");
  seen = whole;
  seen.of(TensorKind::kGradient)[2].pop_back();
  ExpectFails(check(seen), "elements of ");
  Guard guard;
  GuardNearSteps("accumulated", kModel, kBatch, whole, whole, guard);
  ExpectAllNoticed(guard, 5);
}

TEST(CheckNearSteps, FailsForWhatIsNotFiniteInEitherRunAndForOtherSizes) {
  const StepSight good = ExampleSight();
  const auto fails = [&](const StepSight& one, const StepSight& other, const std::string& part) {
    ExpectFails(CheckNearSteps("accumulated", kModel, kBatch, one, other), part);
    ExpectFails(CheckNearSteps("accumulated", kModel, kBatch, other, one), part);
    ExpectFails(CheckNearSteps("accumulated", kModel, kBatch, other, other), part);
  };
  for (double odd : kNotFinite) {
    StepSight seen = good;
    ElementOf(seen, 5, 1) = odd;
    fails(good, seen, "element 1 is");
    seen = good;
    seen.loss = odd;
    fails(good, seen, "loss");
  }
  for (Change change : kOtherSizes) {
    StepSight seen = good;
    change(seen);
    ExpectFails(CheckNearSteps("accumulated", kModel, kBatch, good, seen), "is ");
    ExpectFails(CheckNearSteps("accumulated", kModel, kBatch, seen, good), "is ");
  }
}

TEST(CheckNearSteps, TakesZerosAndSubnormalNumbersForNearlyZero) {
  for (double mine : {0.0, -0.0, kSubnormal}) {
    for (double other : {0.0, -0.0, -kSubnormal}) {
      StepSight whole = ExampleSight(), seen = whole;
      ElementOf(whole, 5, 1) = mine;
      ElementOf(seen, 5, 1) = other;
      ExpectPasses(CheckNearSteps("accumulated", kModel, kBatch, whole, seen));
    }
  }
}

TEST(CheckNearSteps, NamesTheTensorThatIsFarthestOffAndCountsTheOthers) {
  const StepSight whole = ExampleSight();
  StepSight seen = whole;
  ElementOf(seen, 3, 0) += 3 * LimitOf(whole);
  ElementOf(seen, 4, 2) += 9 * LimitOf(whole);
  ElementOf(seen, 4, 3) += 5 * LimitOf(whole);
  ElementOf(seen, 6, 0) += 2 * LimitOf(whole);
  const RealResult result = CheckNearSteps("permuted", kModel, kBatch, whole, seen);
  ExpectFails(result, "element 2 is ");
  EXPECT_EQ(result.divergence->tensor, contract::Parameters(kModel)[4].name);
  EXPECT_EQ(result.divergence->num_tensors, 3);
}

// Limits of the example's sums and of a shift, relative to the largest gradient and absolute for the loss.
constexpr double kOfSums = 2 * (1 * (6 * 7 + 12 + 20 + 19)) * 0x1p-24;
double OfShift(const Shift& shift) { return 2 * (2 * (1 * (7 + 12 + 20) + 12) * 0x1p-24) * shift.largest; }

contract::ModelSpec UntiedModel() {
  contract::Gpt2Spec model = kModel.gpt2();
  model.tied_head = false;
  return model;
}

// With a head, before the unused parameter, whose gradient is a millionth of the others'.
StepSight UntiedSight() {
  StepSight sight = ExampleSight();
  auto& gradients = sight.of(TensorKind::kGradient);
  std::vector<double> head = gradients.front();
  for (double& value : head) value *= 1e-6;
  gradients.insert(gradients.end() - 1, head);
  return sight;
}

TEST(CheckShiftedSteps, AllowsTheRoundingsOfTheShiftAndNothingBeyond) {
  for (double largest : {0.0, 100.0, 3000.0}) {
    for (bool tied : {true, false}) {
      const contract::ModelSpec model = tied ? kModel : UntiedModel();
      const StepSight whole = tied ? ExampleSight() : UntiedSight();
      const Shift shift{largest, 0};
      const auto check = [&](const StepSight& seen) {
        return CheckShiftedSteps("shifted_logits", model, kBatch, shift, whole, seen);
      };
      ExpectPasses(check(whole));
      for (size_t tensor : {size_t{0}, size_t{5}, whole.of(TensorKind::kGradient).size() - 2}) {
        const bool is_head = contract::Parameters(model)[tensor].name == "head.weight";
        StepSight head = ZeroSight();
        head.of(TensorKind::kGradient).front() = whole.of(TensorKind::kGradient)[tensor];
        const double limit = (kOfSums + OfShift(shift)) * LargestOf(is_head ? head : ExampleSight());
        const double before = whole.of(TensorKind::kGradient)[tensor][1];
        StepSight seen = whole;
        for (double sign : {-1.0, 1.0}) {
          ElementOf(seen, tensor, 1) = before + sign * 0.99 * limit;
          ExpectPasses(check(seen));
          ElementOf(seen, tensor, 1) = before + sign * 1.01 * limit;
          ExpectFails(check(seen), "shifted_logits: step 0: gradient of ");
        }
      }
      StepSight seen = whole;
      const double limit = kOfSums * std::abs(whole.loss) + OfShift(shift);
      seen.loss = whole.loss + 0.99 * limit;
      ExpectPasses(check(seen));
      seen.loss = whole.loss + 1.01 * limit;
      ExpectFails(check(seen), "loss");
    }
  }
}

TEST(CheckShiftedSteps, FailsForWhatIsNotFiniteInEitherRunAndForOtherSizes) {
  const StepSight good = ExampleSight();
  const auto fails = [&](const StepSight& one, const StepSight& other, const std::string& part) {
    // Far apart or not, what failed is no lack of evidence.
    for (const Shift& shift : {Shift{100, 0}, Shift{100, 1e9}}) {
      ExpectFails(CheckShiftedSteps("shifted_scores", kModel, kBatch, shift, one, other), part);
    }
  };
  for (double odd : kNotFinite) {
    StepSight seen = good;
    ElementOf(seen, 5, 1) = odd;
    fails(good, seen, "element 1 is");
    fails(seen, good, "element 1 is");
    fails(seen, seen, "element 1 is");
    seen = good;
    seen.loss = odd;
    fails(good, seen, "loss");
    fails(seen, good, "loss");
    fails(seen, seen, "loss");
  }
  for (Change change : kOtherSizes) {
    StepSight seen = good;
    change(seen);
    fails(good, seen, "is ");
    fails(seen, good, "is ");
  }
  StepSight seen = good;
  ++seen.tokens;
  fails(good, seen, "tokens");
  Guard guard;
  GuardShiftedSteps("shifted_scores", kModel, kBatch, Shift{100, 0}, good, good, guard);
  ExpectAllNoticed(guard, 5);
}

TEST(CheckShiftedSteps, IsVacuousWithoutGradientWithLogitsTooCloseAndWithAShiftThatHidesAll) {
  const StepSight whole = ExampleSight();
  const auto check = [&](const StepSight& sight, const Shift& shift) {
    return CheckShiftedSteps("shifted_logits", kModel, kBatch, shift, sight, sight);
  };
  ExpectVacuous(check(ZeroSight(), Shift{100, 0}));
  ExpectVacuous(check(whole, Shift{100, whole.loss}));
  ExpectPasses(check(whole, Shift{100, 0.999 * whole.loss}));
  const double hides = 1 / OfShift(Shift{1, 0});
  ExpectVacuous(check(whole, Shift{hides, 0}));
  ExpectPasses(check(whole, Shift{0.99 * hides, 0}));
}

TEST(Gpt2Checks, AreVacuousWhereGradientsAreZero) {
  const StepSight zero = ZeroSight();
  ExpectVacuous(CheckNearSteps("permuted", kModel, kBatch, zero, zero));
  StepSight whole = zero;
  whole.tokens = 2 * zero.tokens;
  ExpectVacuous(CheckSplitSteps(kModel, kBatch, whole, zero, zero));
  const auto parameters = contract::Parameters(kModel);
  std::vector<std::vector<int>> exponents;
  for (const auto& parameter : parameters) exponents.emplace_back(static_cast<size_t>(parameter.cols), 1);
  ExpectVacuous(CheckScaledSteps(kModel, exponents, zero, zero));
  for (auto& columns : exponents) std::fill(columns.begin(), columns.end(), 0);
  ExpectVacuous(CheckScaledSteps(kModel, exponents, ExampleSight(), ExampleSight()));
}

TEST(CheckSplitSteps, WeighsPartsByTheirTokensAndFailsForAMeanOfMeans) {
  StepSight first = ExampleSight(1), second = ExampleSight(2);
  first.tokens = 10;
  second.tokens = 31;
  const auto mixed = [&](double share) {  // share of the first part
    StepSight sight = first;
    sight.tokens = 41;
    sight.loss = share * first.loss + (1 - share) * second.loss;
    for (size_t tensor = 0; tensor < sight.of(TensorKind::kGradient).size(); ++tensor) {
      for (size_t i = 0; i < sight.of(TensorKind::kGradient)[tensor].size(); ++i) {
        ElementOf(sight, tensor, i) = share * ElementOf(first, tensor, i) + (1 - share) * ElementOf(second, tensor, i);
      }
    }
    return sight;
  };
  const StepSight whole = mixed(10.0 / 41);
  const auto check = [&](const StepSight& seen) { return CheckSplitSteps(kModel, kBatch, seen, first, second); };
  ExpectPasses(check(whole));
  ExpectFails(check(mixed(0.5)), "gradient");
  ExpectFails(check(mixed(0)), "gradient");
  ExpectFails(check(mixed(10.01 / 41)), "gradient");
  StepSight seen = whole;
  seen.tokens = 40;
  ExpectFails(check(seen), "tokens");
  seen = whole;
  seen.loss *= 1.001;
  ExpectFails(check(seen), "loss");
  // In each of the three runs, with whatever the others hold.
  for (double odd : kNotFinite) {
    for (int run = 0; run < 3; ++run) {
      StepSight runs[] = {whole, first, second};
      ElementOf(runs[run], 0, 0) = odd;
      ExpectFails(CheckSplitSteps(kModel, kBatch, runs[0], runs[1], runs[2]), "gradient of embed.weight: element 0 is");
      StepSight with_loss[] = {whole, first, second};
      with_loss[run].loss = odd;
      ExpectFails(CheckSplitSteps(kModel, kBatch, with_loss[0], with_loss[1], with_loss[2]), "loss");
    }
  }
  for (Change change : kOtherSizes) {
    for (int run = 0; run < 3; ++run) {
      // A part that is the whole: what is missing from the other part is no difference then.
      StepSight runs[] = {first, first, first};
      runs[0].tokens = 2 * first.tokens;
      ExpectPasses(CheckSplitSteps(kModel, kBatch, runs[0], runs[1], runs[2]));
      change(runs[run]);
      ExpectFails(CheckSplitSteps(kModel, kBatch, runs[0], runs[1], runs[2]), "is ");
    }
  }
  Guard guard;
  GuardSplitSteps(kModel, kBatch, whole, first, second, guard);
  ExpectAllNoticed(guard, 5);
}

TEST(CheckScaledSteps, DemandsEveryBitOfEveryElement) {
  const auto parameters = contract::Parameters(kModel);
  StepSight whole = ExampleSight();
  std::vector<std::vector<int>> exponents;
  for (const auto& parameter : parameters) {
    exponents.emplace_back();
    for (int64_t column = 0; column < parameter.cols; ++column) {
      exponents.back().push_back(static_cast<int>((parameter.tensor_id + column) % 7) - 3);
    }
  }
  for (auto& tensor : whole.of(TensorKind::kGradient)) {
    for (double& value : tensor) value = static_cast<float>(value);
  }
  StepSight scaled = whole;
  for (size_t tensor = 0; tensor < parameters.size(); ++tensor) {
    for (size_t i = 0; i < scaled.of(TensorKind::kGradient)[tensor].size(); ++i) {
      double& value = ElementOf(scaled, tensor, i);
      value *= std::exp2(-exponents[tensor][i % exponents[tensor].size()]);
    }
  }
  const auto check = [&](const StepSight& seen) { return CheckScaledSteps(kModel, exponents, whole, seen); };
  ExpectPasses(check(scaled));
  ExpectFails(check(whole), "gradient");
  for (size_t tensor : {0u, 4u, 9u}) {
    StepSight seen = scaled;
    float value = static_cast<float>(ElementOf(seen, tensor, 3));
    ElementOf(seen, tensor, 3) = std::nextafter(value, 0.0f);
    ExpectFails(check(seen), "element 3 is ");
    for (double odd : kNotFinite) {
      ElementOf(seen, tensor, 3) = odd;
      ExpectFails(check(seen), "element 3 is ");
    }
  }
  StepSight seen = scaled;
  for (double odd : {std::nextafter(seen.loss, 0), kNaN, kInf, -kInf}) {
    seen.loss = odd;
    ExpectFails(check(seen), "loss");
  }
  for (Change change : kOtherSizes) {
    seen = scaled;
    change(seen);
    ExpectFails(check(seen), "is ");
  }
  // The sign of a zero is scaled exactly too, and what a kernel flushes is not.
  for (const auto& [exact, other] : {std::pair(0.0, -0.0), std::pair(-0.0, 0.0), std::pair(kSubnormal, 0.0)}) {
    StepSight base = whole, right = scaled;
    const int exponent = exponents[0][3];
    ElementOf(base, 0, 3) = std::ldexp(exact, exponent);
    ElementOf(right, 0, 3) = exact;
    ExpectPasses(CheckScaledSteps(kModel, exponents, base, right));
    ElementOf(right, 0, 3) = other;
    ExpectFails(CheckScaledSteps(kModel, exponents, base, right), "element 3 is ");
  }
  // Runs that agree in what is not finite show nothing.
  for (double odd : kNotFinite) {
    StepSight base = whole, same = scaled;
    ElementOf(base, 0, 3) = ElementOf(same, 0, 3) = odd;
    ExpectFails(CheckScaledSteps(kModel, exponents, base, same), "element 3 is ");
    base = whole, same = scaled;
    base.loss = same.loss = odd;
    ExpectFails(CheckScaledSteps(kModel, exponents, base, same), "loss");
  }
  Guard guard;
  GuardScaledSteps(kModel, exponents, whole, scaled, guard);
  ExpectAllNoticed(guard, 6);
}

}  // namespace
}  // namespace plumbline::conformance
