// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/run_digest.h"

#include <gtest/gtest.h>

#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::TensorKind;
using contract::Trace;
using reports::CheckOutcome;

const reports::CheckRecord& CheckOf(const MergedRun& merged, const std::string& name) {
  for (const auto& check : merged.checks) {
    if (check.name == name) return check;
  }
  throw std::logic_error(name);
}

void ExpectFail(const MergedRun& merged, const std::string& name, const std::string& part) {
  EXPECT_EQ(CheckOf(merged, name).outcome, CheckOutcome::kFail) << name;
  EXPECT_NE(CheckOf(merged, name).detail.find(part), std::string::npos) << CheckOf(merged, name).detail;
}

TEST(MergeTraces, AddsShardsToTheSameDigestsAsWholeTensors) {
  const RunDigest whole = MergeTraces(ExampleCase(1), ExampleTraces(1, 0)).run;
  for (int64_t world : {2, 3, 5}) {
    for (int64_t stage : {0, 1}) {
      const MergedRun merged = MergeTraces(ExampleCase(world, stage), ExampleTraces(world, stage));
      for (const auto& check : merged.checks) EXPECT_EQ(check.outcome, CheckOutcome::kPass) << check.detail;
      ASSERT_EQ(merged.run.steps.size(), whole.steps.size());
      for (size_t step = 0; step < whole.steps.size(); ++step) {
        for (int kind = 0; kind < contract::kNumTensorKinds; ++kind) {
          EXPECT_EQ(merged.run.steps[step].tensors[kind], whole.steps[step].tensors[kind]) << world << " " << kind;
        }
      }
    }
  }
}

TEST(MergeTraces, FailsOnAMissingSlice) {
  auto traces = ExampleTraces(2, 1);
  traces[1].steps[2].of(TensorKind::kMaster).pop_back();
  ExpectFail(MergeTraces(ExampleCase(2, 1), traces), "trace", "step 2: master of");
}

TEST(MergeTraces, FailsWhenARankLeavesOutWhatItsStageDoesNotShard) {
  for (int64_t stage : {0, 1}) {
    for (TensorKind kind : {TensorKind::kGradient, TensorKind::kMaster, TensorKind::kWeight}) {
      if (stage == 1 && kind != TensorKind::kWeight) continue;
      auto traces = ExampleTraces(2, stage);
      traces[1].steps[3].of(kind).pop_back();
      ExpectFail(MergeTraces(ExampleCase(2, stage), traces), "trace", "is not whole on rank 1");
    }
  }
}

TEST(MergeTraces, FailsOnAHoleBetweenSlices) {
  auto traces = ExampleTraces(3, 1);
  auto& slices = traces[1].steps[1].of(TensorKind::kMaster);
  slices.erase(slices.begin());  // the middle third of the first tensor
  ExpectFail(MergeTraces(ExampleCase(3, 1), traces), "trace", "are on no rank");
}

TEST(MergeTraces, FailsOnOverlappingSlices) {
  auto traces = ExampleTraces(2, 1);
  traces[1].steps[0].of(TensorKind::kGradient)[0].begin -= 1;
  ExpectFail(MergeTraces(ExampleCase(2, 1), traces), "trace", "overlaps");
}

TEST(MergeTraces, FailsOnASliceBeyondTheTensor) {
  auto traces = ExampleTraces(2, 1);
  traces[1].steps[0].of(TensorKind::kGradient)[0].end += 1;
  ExpectFail(MergeTraces(ExampleCase(2, 1), traces), "trace", "beyond the tensor");
}

TEST(MergeTraces, FailsOnATensorThatIsNotOfTheCase) {
  auto traces = ExampleTraces(1, 0);
  traces[0].steps[0].of(TensorKind::kWeight)[0].tensor = "embed.weights";
  ExpectFail(MergeTraces(ExampleCase(1), traces), "trace", "embed.weights");
}

TEST(MergeTraces, FailsWhenAReplicaDiffers) {
  auto traces = ExampleTraces(3, 0);
  traces[2].steps[1].of(TensorKind::kWeight)[1].digest.hash ^= 1;
  ExpectFail(MergeTraces(ExampleCase(3), traces), "replicas", "step 1: weight of");
  ExpectFail(MergeTraces(ExampleCase(3), traces), "replicas", "rank 2");
}

TEST(MergeTraces, FailsWhenRanksStateDifferentLossOrTokens) {
  auto traces = ExampleTraces(2, 0);
  traces[1].steps[0].loss += 1;
  ExpectFail(MergeTraces(ExampleCase(2), traces), "replicas", "loss");
  traces = ExampleTraces(2, 0);
  traces[1].steps[3].tokens += 1;
  ExpectFail(MergeTraces(ExampleCase(2), traces), "replicas", "tokens");
}

TEST(MergeTraces, FailsWhenCollectivesDifferInOrder) {
  auto traces = ExampleTraces(2, 1);
  traces[1].steps[3].comm_sequence ^= 1;
  ExpectFail(MergeTraces(ExampleCase(2, 1), traces), "collectives", "step 3: rank 1");
}

TEST(MergeTraces, FailsOnAShortOrUnfinishedTrace) {
  auto traces = ExampleTraces(2, 0);
  traces[1].steps.pop_back();
  ExpectFail(MergeTraces(ExampleCase(2), traces), "trace", "rank 1: trace has 3 steps");
  traces = ExampleTraces(2, 0);
  traces[0].complete = false;
  ExpectFail(MergeTraces(ExampleCase(2), traces), "trace", "no end record");
}

TEST(MergeTraces, FailsWhenAnotherConfigWasRun) {
  auto traces = ExampleTraces(2, 1);
  traces[0].config.zero_stage = 2;
  ExpectFail(MergeTraces(ExampleCase(2, 1), traces), "trace", "another config");
}

TEST(MergeTraces, FailsOnMomentsOfAnOptimizerWithoutAny) {
  contract::Case spec = ExampleCase(1);
  spec.config.optimizer = contract::OptimizerKind::kModularSgd;
  auto traces = ExampleTraces(1, 0);
  traces[0].config = spec.config;
  ExpectFail(MergeTraces(spec, traces), "trace", "moment of");
}

}  // namespace
}  // namespace plumbline::conformance
