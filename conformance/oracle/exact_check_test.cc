// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/exact_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/oracle/testing/odd_numbers.h"

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

TEST(CompareExactly, NeverPassesWhatIsNotFiniteNorNearlyTheLoss) {
  const double loss = ExampleRun().steps[0].loss;
  for (double seen :
       {kNaN, kOtherNaN, kInf, -kInf, -loss, -0.0, 0.0, std::nextafter(loss, 0), std::nextafter(loss, 9)}) {
    RunDigest candidate = ExampleRun();
    candidate.steps[0].loss = seen;
    EXPECT_EQ(Compare(candidate).check.outcome, CheckOutcome::kFail) << seen;
  }
  for (double both : kNotFinite) {
    RunDigest run = ExampleRun();
    run.steps[0].loss = both;
    EXPECT_EQ(CompareExactly(ExampleCase(1).model, run, run).check.outcome, CheckOutcome::kFail) << both;
  }
}

// A loss of family exact is an integer that may be written with a point.
TEST(CompareExactly, TakesALossOfMinusZeroForTheIntegerZero) {
  RunDigest truth = ExampleRun(), candidate = ExampleRun();
  truth.steps[0].loss = 0.0;
  candidate.steps[0].loss = -0.0;
  EXPECT_EQ(CompareExactly(ExampleCase(1).model, truth, candidate).check.outcome, CheckOutcome::kPass);
  candidate.steps[0].loss = kSubnormal;
  EXPECT_EQ(CompareExactly(ExampleCase(1).model, truth, candidate).check.outcome, CheckOutcome::kFail);
}

// An embedding of 10^7 elements whose gradient three ranks hold in parts, through the files that they leave.
class BigRun {
 public:
  static constexpr int64_t kWorld = 3;
  static constexpr int64_t kElements = 3 * int64_t{3'333'337};

  BigRun() : spec_(ExampleCase(kWorld, 1)) {
    spec_.model.exact().vocab = kElements / spec_.model.exact().width;
    spec_.steps = 1;
    for (int64_t rank = 0; rank < kWorld; ++rank) {
      contract::StepRecord record;
      record.loss = 3;
      for (TensorKind kind : {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kMaster, TensorKind::kWeight}) {
        for (const auto& parameter : contract::Parameters(spec_.model)) {
          const bool sharded = kind != TensorKind::kWeight;
          const int64_t begin = sharded ? parameter.numel() * rank / kWorld : 0;
          const int64_t end = sharded ? parameter.numel() * (rank + 1) / kWorld : parameter.numel();
          if (begin < end) record.of(kind).push_back({parameter.name, begin, end, {}});
        }
      }
      contract::SliceDigest& slice = record.of(TensorKind::kGradient)[0];
      for (int64_t i = slice.begin; i < slice.end; ++i) slice.digest.Add(i, ValueAt(i));
      records_.push_back(std::move(record));
    }
  }

  static int64_t ValueAt(int64_t i) { return static_cast<int64_t>(contract::Mix(static_cast<uint64_t>(i)) % 41) - 20; }

  const contract::Case& spec() const { return spec_; }

  // One element of the part that holds it has another value.
  void Change(int64_t element, int64_t value) {
    for (contract::StepRecord& record : records_) {
      contract::SliceDigest& slice = record.of(TensorKind::kGradient)[0];
      if (element < slice.begin || element >= slice.end) continue;
      contract::Digest before, after;  // digests are sums
      before.Add(element, ValueAt(element));
      after.Add(element, value);
      slice.digest.hash += after.hash - before.hash;
      slice.digest.sum += after.sum - before.sum;
      slice.digest.sum_squares += after.sum_squares - before.sum_squares;
      slice.digest.sum_indexed =
          (slice.digest.sum_indexed + after.sum_indexed - before.sum_indexed) & (contract::kIndexedModulus - 1);
    }
  }

  RunDigest ThroughFiles() const {
    const contract::testing::TemporaryFolder folder;
    std::vector<contract::Trace> traces;
    for (int64_t rank = 0; rank < kWorld; ++rank) {
      contract::TraceWriter writer(folder.path(), "example", rank, spec_.config);
      writer.Step(records_[static_cast<size_t>(rank)]);
      writer.End(1);
      traces.push_back(contract::ReadTrace(folder.path(), rank));
    }
    MergedRun merged = MergeTraces(spec_, traces);
    for (const auto& check : merged.checks) EXPECT_NE(check.outcome, CheckOutcome::kFail) << check.detail;
    return std::move(merged.run);
  }

 private:
  contract::Case spec_;
  std::vector<contract::StepRecord> records_;
};

TEST(CompareExactly, FindsOneBitOfOneOfTenMillionElementsThatRanksHoldInParts) {
  const BigRun big;
  const RunDigest truth = big.ThroughFiles();
  EXPECT_EQ(CompareExactly(big.spec().model, truth, big.ThroughFiles()).check.outcome, CheckOutcome::kPass);
  for (int64_t element : {int64_t{0}, BigRun::kElements / 3, BigRun::kElements - 1}) {
    for (int bit : {0, 40}) {
      BigRun changed = big;
      changed.Change(element, BigRun::ValueAt(element) ^ (int64_t{1} << bit));
      const ExactResult result = CompareExactly(big.spec().model, truth, changed.ThroughFiles());
      ASSERT_TRUE(result.divergence) << element << " " << bit;
      EXPECT_EQ(result.divergence->quantity, "gradient");
      EXPECT_EQ(result.divergence->tensor, "embed.weight");
    }
  }
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
