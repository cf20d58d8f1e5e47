// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/run_digest.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract/layer_stages.h"
#include "conformance/oracle/testing/example_run.h"
#include "conformance/oracle/testing/example_step.h"
#include "conformance/oracle/testing/odd_numbers.h"

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

// One step of gpt2 in which rank 0 lists everything whole, the others what the stage does not shard; of frozen
// parameters weights and master weights only.
std::vector<Trace> WholeTraces(const contract::Case& spec) {
  std::vector<Trace> traces;
  for (int64_t rank = 0; rank < spec.config.world_size(); ++rank) {
    contract::StepRecord record;
    record.real = contract::RealStep{{0.1}, 1.0, false};
    for (TensorKind kind : contract::kTensorKinds) {
      for (const auto& parameter : contract::Parameters(spec.model)) {
        if (parameter.frozen && kind != TensorKind::kWeight && kind != TensorKind::kMaster) continue;
        const bool is_persistent = parameter.numel() < spec.config.persistence_threshold_elems;
        const int64_t stage = contract::StageOf(spec.config, parameter);
        const bool is_sharded =
            !parameter.frozen && (kind == TensorKind::kWeight ? stage == 3 && !is_persistent : stage >= 1);
        if (rank > 0 && is_sharded) continue;
        record.of(kind).push_back({parameter.name, 0, parameter.numel(), {}});
      }
    }
    traces.push_back({"example", rank, spec.config.world_size(), spec.config, {record}, true});
  }
  return traces;
}

void Drop(Trace& trace, TensorKind kind, const std::string& tensor) {
  std::erase_if(trace.steps.front().of(kind), [&](const auto& slice) { return slice.tensor == tensor; });
}

TEST(MergeTraces, AsksOfEachLayerWhatItsStageSays) {
  contract::Case spec = ExampleRealCase();
  spec.config.data_degree = 2;
  spec.config.micro_batch_size = 3;
  spec.config.zero_stage = 3;
  spec.config.persistence_threshold_elems = 0;
  spec.config.layer_stages.assign(static_cast<size_t>(spec.model.layers()), 0);
  auto traces = WholeTraces(spec);
  EXPECT_EQ(CheckOf(MergeTraces(spec, traces), "trace").outcome, CheckOutcome::kPass);
  Drop(traces[1], TensorKind::kMoment, "layers.0.norm1.weight");
  ExpectFail(MergeTraces(spec, traces), "trace",
             "moment of layers.0.norm1.weight is not whole on rank 1, though stage 0 does not shard it");
  spec.config.zero_stage = 0;
  spec.config.layer_stages.front() = 1;
  traces = WholeTraces(spec);
  for (const auto& slice : traces[0].steps.front().of(TensorKind::kMaster)) {
    if (slice.tensor == "layers.0.norm1.weight") traces[1].steps.front().of(TensorKind::kMaster).push_back(slice);
  }
  ExpectFail(MergeTraces(spec, traces), "trace",
             "master of layers.0.norm1.weight [0, 12) is on several ranks, though stage 1 shards it");
}

TEST(MergeTraces, FailsWhenARankLeavesOutAPersistentWeightUnderStage3) {
  contract::Case spec = ExampleRealCase();
  spec.config.data_degree = 2;
  spec.config.micro_batch_size = 3;
  spec.config.zero_stage = 3;
  for (int64_t threshold : {0, 13}) {  // a norm's weight has 12 elements
    spec.config.persistence_threshold_elems = threshold;
    auto traces = WholeTraces(spec);
    EXPECT_EQ(CheckOf(MergeTraces(spec, traces), "trace").outcome, CheckOutcome::kPass);
    Drop(traces[1], TensorKind::kWeight, "norm.weight");
    const MergedRun merged = MergeTraces(spec, traces);
    if (threshold == 0) {
      EXPECT_EQ(CheckOf(merged, "trace").outcome, CheckOutcome::kPass);
    } else {
      ExpectFail(merged, "trace", "weight of norm.weight is not whole on rank 1");
    }
  }
}

TEST(MergeTraces, FailsWhenARankLeavesOutAFrozenParameterInAnyStage) {
  contract::Case spec = ExampleRealCase();
  spec.config.data_degree = 2;
  spec.config.micro_batch_size = 3;
  spec.config.persistence_threshold_elems = 0;
  for (int64_t stage : {0, 1, 2, 3}) {
    for (TensorKind kind : {TensorKind::kWeight, TensorKind::kMaster}) {
      spec.config.zero_stage = stage;
      auto traces = WholeTraces(spec);
      EXPECT_EQ(CheckOf(MergeTraces(spec, traces), "trace").outcome, CheckOutcome::kPass);
      Drop(traces[1], kind, "layers.0.norm2.weight");
      ExpectFail(MergeTraces(spec, traces), "trace", "of layers.0.norm2.weight is not whole on rank 1");
    }
  }
}

// Each in turn: whatever a stage shards must not be on a second rank; what it does not, must be.
TEST(MergeTraces, FailsWhenWhatItsStageShardsIsOnASecondRank) {
  contract::Case spec = ExampleRealCase();
  spec.config.data_degree = 2;
  spec.config.micro_batch_size = 3;
  spec.config.persistence_threshold_elems = 0;
  for (int64_t stage : {1, 2, 3}) {
    for (TensorKind kind : contract::kTensorKinds) {
      if (kind == TensorKind::kWeight && stage < 3) continue;
      spec.config.zero_stage = stage;
      auto traces = WholeTraces(spec);
      if (traces[0].steps[0].of(kind).empty()) continue;
      traces[1].steps[0].of(kind).push_back(traces[0].steps[0].of(kind).back());
      const bool is_frozen = traces[0].steps[0].of(kind).back().tensor == "layers.0.norm2.weight";
      ASSERT_FALSE(is_frozen);
      ExpectFail(MergeTraces(spec, traces), "trace",
                 "is on several ranks, though stage " + std::to_string(stage) + " shards it");
    }
  }
}

// Twice the first half has as many elements as the whole.
TEST(MergeTraces, FailsOnASliceThatARankListsTwice) {
  auto traces = ExampleTraces(2, 0);
  for (contract::Trace& trace : traces) {
    auto& slices = trace.steps[1].of(TensorKind::kWeight);
    contract::SliceDigest second = slices[0];
    slices[0].end = second.begin = slices[0].end / 2;
    slices.push_back(second);
  }
  EXPECT_EQ(CheckOf(MergeTraces(ExampleCase(2), traces), "trace").outcome, CheckOutcome::kPass);
  auto& slices = traces[1].steps[1].of(TensorKind::kWeight);
  slices.back() = slices.front();
  ExpectFail(MergeTraces(ExampleCase(2), traces), "trace", "is listed twice on rank 1");
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

TEST(MergeTraces, KeepsWhatARankHoldsOrStatesOtherwiseThanTheFirst) {
  auto traces = ExampleTraces(3, 0);
  contract::Digest& digest = traces[2].steps[1].of(TensorKind::kWeight)[1].digest;
  digest.Add(3, 17);
  traces[1].steps[2].loss += 1;
  const RunDigest run = MergeTraces(ExampleCase(3), traces).run;
  EXPECT_TRUE(run.steps[0].other_digests.empty() && run.steps[0].other_scalars.empty());
  ASSERT_EQ(run.steps[1].other_digests.size(), 1u);
  const RankDigest& other = run.steps[1].other_digests[0];
  EXPECT_EQ(other.rank, 2);
  EXPECT_EQ(other.kind, TensorKind::kWeight);
  EXPECT_EQ(other.tensor, 1u);
  EXPECT_EQ(other.digest, digest);  // the slice is the whole tensor
  ASSERT_EQ(run.steps[2].other_scalars.size(), 1u);
  EXPECT_EQ(run.steps[2].other_scalars[0].rank, 1);
  EXPECT_EQ(run.steps[2].other_scalars[0].loss, run.steps[2].loss + 1);
}

TEST(MergeTraces, PutsAnotherSliceInThePlaceOfTheFirstInTheWholeTensor) {
  // Ranks 1 and 2 hold the same second half; rank 2's has one element that differs.
  auto traces = ExampleTraces(2, 1);
  traces.push_back(traces[1]);
  contract::Case spec = ExampleCase(3, 1);
  for (int64_t rank = 0; rank < 3; ++rank) {
    traces[static_cast<size_t>(rank)].rank = rank;
    traces[static_cast<size_t>(rank)].world = 3;
    traces[static_cast<size_t>(rank)].config = spec.config;
  }
  const contract::Digest whole = MergeTraces(spec, traces).run.steps[0].tensors[0][0];
  traces[2].steps[0].of(TensorKind::kGradient)[0].digest.Add(20, 5);
  contract::Digest expected = whole;
  expected.Add(20, 5);
  const RunDigest run = MergeTraces(spec, traces).run;
  EXPECT_EQ(run.steps[0].tensors[0][0], whole);
  ASSERT_EQ(run.steps[0].other_digests.size(), 1u);
  EXPECT_EQ(run.steps[0].other_digests[0].digest, expected);
}

// A run of gpt2 with one frozen parameter, whole on every rank.
std::pair<contract::Case, std::vector<Trace>> RealRun(int64_t world) {
  contract::Case spec = ExampleRealCase();
  spec.config.data_degree = world;
  spec.config.train_batch_size = 6 * world;
  spec.first_step = 5;
  spec.steps = 3;
  std::vector<Trace> traces;
  for (int64_t rank = 0; rank < world; ++rank) {
    Trace& trace = traces.emplace_back(Trace{"example", rank, world, spec.config, {}, true});
    for (int64_t step = 5; step < 8; ++step) {
      contract::StepRecord& record = trace.steps.emplace_back();
      record.step = step;
      record.loss = 2;
      record.tokens = 30;
      record.real = contract::RealStep{{1e-3}, 0.5, false};
      for (TensorKind kind : contract::kTensorKinds) {
        for (const auto& parameter : contract::Parameters(spec.model)) {
          if (parameter.frozen && kind != TensorKind::kMaster && kind != TensorKind::kWeight) continue;
          record.of(kind).push_back({parameter.name, 0, parameter.numel(), {}});
          record.of(kind).back().digest.AddBits(step, static_cast<uint64_t>(parameter.tensor_id));
        }
      }
    }
  }
  return {spec, traces};
}

TEST(MergeTraces, CarriesTheNumbersOfARealStepAndTheStepsName) {
  const auto [spec, traces] = RealRun(2);
  const MergedRun merged = MergeTraces(spec, traces);
  for (const auto& check : merged.checks) EXPECT_NE(check.outcome, CheckOutcome::kFail) << check.detail;
  ASSERT_EQ(merged.run.steps.size(), 3u);
  EXPECT_EQ(merged.run.steps[2].step, 7);
  ASSERT_TRUE(merged.run.steps[2].real);
  EXPECT_EQ(merged.run.steps[2].real->gradient_norm, 0.5);
}

TEST(MergeTraces, ComparesLrNormAndSkippedOverRanks) {
  const auto detail = [](auto change) {
    auto [spec, traces] = RealRun(3);
    change(*traces[2].steps[1].real);
    const MergedRun merged = MergeTraces(spec, traces);
    EXPECT_EQ(CheckOf(merged, "replicas").outcome, CheckOutcome::kFail);
    EXPECT_EQ(merged.run.steps[1].other_scalars.size(), 1u);
    return CheckOf(merged, "replicas").detail;
  };
  EXPECT_EQ(detail([](contract::RealStep& real) { real.lr[0] = 2; }), "step 6: rank 2 states another lr than rank 0");
  EXPECT_EQ(detail([](contract::RealStep& real) { real.gradient_norm = 2; }),
            "step 6: rank 2 states another gradient_norm than rank 0");
  EXPECT_EQ(detail([](contract::RealStep& real) { real.gradient_norm = HUGE_VAL; }),
            "step 6: rank 2 states another gradient_norm than rank 0");
  EXPECT_EQ(detail([](contract::RealStep& real) { real.skipped = true; }),
            "step 6: rank 2 states another skipped than rank 0");
}

// Each rank's numbers are held to rank 0's: in a trace every NaN and Inf is the same null.
TEST(MergeTraces, TellsNumbersOfOtherClassesApartButNotNaNs) {
  const double numbers[] = {0.0, -0.0, kSubnormal, kInf, -kInf, kNaN};
  for (const auto place : {+[](contract::StepRecord& record) -> double& { return record.loss; },
                           +[](contract::StepRecord& record) -> double& { return record.real->gradient_norm; },
                           +[](contract::StepRecord& record) -> double& { return record.real->lr[0]; }}) {
    const auto outcome = [&](double first, double other) {
      auto [spec, traces] = RealRun(3);
      for (Trace& trace : traces) place(trace.steps[1]) = first;
      place(traces[2].steps[1]) = other;
      return CheckOf(MergeTraces(spec, traces), "replicas").outcome;
    };
    for (const double& a : numbers) {
      for (const double& b : numbers) {
        EXPECT_EQ(outcome(a, b), &a == &b ? CheckOutcome::kPass : CheckOutcome::kFail) << a << " and " << b;
      }
    }
    EXPECT_EQ(outcome(kNaN, kOtherNaN), CheckOutcome::kPass);
  }
}

TEST(MergeTraces, DemandsTheNumbersOfARealStep) {
  auto [spec, traces] = RealRun(1);
  traces[0].steps[0].real.reset();
  ExpectFail(MergeTraces(spec, traces), "trace", "states no lr");
  traces = RealRun(1).second;
  traces[0].steps[0].real->lr.push_back(1);
  ExpectFail(MergeTraces(spec, traces), "trace", "2 lr for 1 groups");
}

TEST(MergeTraces, FailsOnAGradientOrMomentOfAFrozenParameter) {
  for (TensorKind kind : {TensorKind::kGradient, TensorKind::kMoment, TensorKind::kSecondMoment}) {
    auto [spec, traces] = RealRun(1);
    traces[0].steps[1].of(kind).push_back({"layers.0.norm2.weight", 0, 12, {}});
    ExpectFail(MergeTraces(spec, traces), "trace", "layers.0.norm2.weight is not one of this case");
  }
}

TEST(MergeTraces, TakesATraceThatResumesInsideItsSteps) {
  auto [spec, traces] = RealRun(2);
  spec.resume = true;
  for (Trace& trace : traces) trace.steps.erase(trace.steps.begin());
  const MergedRun merged = MergeTraces(spec, traces);
  for (const auto& check : merged.checks) EXPECT_NE(check.outcome, CheckOutcome::kFail) << check.detail;
  EXPECT_EQ(merged.run.steps.front().step, 6);
  traces[1].steps.erase(traces[1].steps.begin());
  ExpectFail(MergeTraces(spec, traces), "trace", "rank 1: trace has 1 steps");
  for (Trace& trace : traces) trace.steps.resize(1);
  ExpectFail(MergeTraces(spec, traces), "trace", "the first step is 6; the case begins at 7");
  spec.resume = false;
  ExpectFail(MergeTraces(spec, traces), "trace", "trace has 1 steps; the case has 3");
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
