// SPDX-License-Identifier: Apache-2.0
// The order of calls by hand for small cases of every stage, the digest against the example of docs/formats.md, and the
// sums of the calls against the ledger's own formula.
#include "conformance/oracle/call_sequence.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "conformance/oracle/ledger_check.h"
#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using Calls = std::vector<CollectiveCall>;

constexpr CollectiveCall Reduce(int64_t bytes) { return {CollectiveKind::kAllReduce, bytes}; }
constexpr CollectiveCall Scatter(int64_t bytes) { return {CollectiveKind::kReduceScatter, bytes}; }
constexpr CollectiveCall Gather(int64_t bytes) { return {CollectiveKind::kAllGather, bytes}; }

std::map<std::string, contract::CommCount> Sums(const contract::Case& spec) {
  std::map<std::string, contract::CommCount> sums;
  for (const CollectiveCall& call : ExpectedCalls(spec.model, spec.config)) {
    const char* const kinds[] = {"", "all_reduce", "reduce_scatter", "all_gather"};
    contract::CommCount& sum = sums[kinds[static_cast<size_t>(call.kind)]];
    sum.calls += 1;
    sum.bytes += call.bytes;
  }
  return sums;
}

TEST(SequenceOf, IsZeroWithoutCallsAndTheExampleOfTheFormats) {
  EXPECT_EQ(SequenceOf({}), 0u);
  const Calls calls{Reduce(8), Scatter(256), Scatter(256), Reduce(8), Gather(256), Gather(256)};
  EXPECT_EQ(SequenceOf(calls), 0x6c189074aa4cd43bull);
}

TEST(SequenceOf, ChangesWithKindBytesOrderAndNumber) {
  const uint64_t one = SequenceOf(Calls{Reduce(8), Scatter(12)});
  EXPECT_NE(one, SequenceOf(Calls{Scatter(12), Reduce(8)}));
  EXPECT_NE(one, SequenceOf(Calls{Reduce(8), Gather(12)}));
  EXPECT_NE(one, SequenceOf(Calls{Reduce(8), Scatter(16)}));
  EXPECT_NE(one, SequenceOf(Calls{Reduce(8), Scatter(12), Scatter(0)}));
}

TEST(ExpectedCalls, AreNoneWithOneRank) {
  for (int64_t stage : {0, 1, 2, 3}) {
    EXPECT_TRUE(ExpectedCalls(ExampleCase(1).model, ExampleCase(1, stage).config).empty()) << stage;
  }
}

// Buckets of the tied gpt2 example under stages 0 to 2: one of 576 padded elements.
TEST(ExpectedCalls, UnderStagesZeroToTwoReduceEachMicroBatchOrTheLast) {
  contract::Case spec = ExampleGpt2(2, 0);
  spec.config.accumulation_steps = 2;
  const auto calls = [&](int64_t stage) {
    spec.config.zero_stage = stage;
    return ExpectedCalls(spec.model, spec.config);
  };
  EXPECT_EQ(calls(0), (Calls{Reduce(8), Reduce(4 * 576), Reduce(8)}));
  EXPECT_EQ(calls(1), (Calls{Reduce(8), Scatter(4 * 576), Reduce(8), Reduce(168), Gather(4 * 576)}));
  EXPECT_EQ(calls(2), (Calls{Reduce(8), Scatter(4 * 576), Scatter(4 * 576), Reduce(8), Reduce(168), Gather(4 * 576)}));
}

// Groups of two ranks: norm 64, layer 448, pos 64, embed 64 padded elements. Embedding, layer and head forward, head
// and layer backward; with a live limit of 0 the tied embedding is gathered for the embedding and again for the head.
TEST(ExpectedCalls, UnderStageThreeGatherBeforeEachUseAndReduceWhatItFinishes) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.config.max_live_elems = 0;
  spec.config.prefetch_bucket_elems = 0;
  EXPECT_EQ(ExpectedCalls(spec.model, spec.config),
            (Calls{Reduce(8), Gather(256), Gather(256), Gather(4 * 448), Gather(256), Gather(256), Scatter(256),
                   Gather(4 * 448), Scatter(4 * 448), Scatter(256), Scatter(256), Reduce(8), Reduce(168)}));
}

TEST(ExpectedCalls, OfLayersWithStagesOfTheirOwnFollowEachStage) {
  const contract::Case spec = ExampleOfLayerStages(1, 0, 2, 2);
  EXPECT_EQ(ExpectedCalls(spec.model, spec.config),
            (Calls{Reduce(8), Scatter(4 * 192), Reduce(4 * 448), Scatter(4 * 448), Scatter(4 * 192), Reduce(8),
                   Reduce(168), Gather(4 * 192), Gather(4 * 448)}));
}

TEST(ExpectedCalls, GatherOneLayerOfStageThreeForItsOwnUses) {
  const contract::Case spec = ExampleOfLayerStages(0, 3, 1, 1);
  EXPECT_EQ(ExpectedCalls(spec.model, spec.config),
            (Calls{Reduce(8), Gather(4 * 448), Gather(4 * 448), Scatter(4 * 448), Reduce(4 * 448), Scatter(4 * 192),
                   Reduce(8), Reduce(168), Gather(4 * 192)}));
}

TEST(ExpectedCalls, DoNotDependOnWhetherOneStageIsWrittenForEachLayer) {
  for (int64_t stage : {0, 1, 2, 3}) {
    contract::Case spec = ExampleOfLayerStages(stage, stage, stage, 3);
    const Calls calls = ExpectedCalls(spec.model, spec.config);
    spec.config.layer_stages.clear();
    EXPECT_EQ(calls, ExpectedCalls(spec.model, spec.config)) << stage;
  }
}

TEST(ExpectedCalls, SumToTheLedgersFormulaInEveryStageAndWithPersistentFrozenAndUnusedParameters) {
  for (int64_t world : {2, 3, 5}) {
    for (int64_t stage : {0, 1, 2, 3}) {
      for (int64_t threshold : {0, 16, 100000}) {
        for (int64_t bucket : {1, 20, 1000}) {
          contract::Case spec = ExampleGpt2(world, stage);
          spec.model.gpt2().unused = true;
          spec.model.gpt2().frozen = {"layers.0.norm1.weight"};
          spec.config.persistence_threshold_elems = threshold;
          spec.config.reduce_bucket_elems = bucket;
          spec.config.accumulation_steps = 3;
          EXPECT_EQ(Sums(spec), ExpectedComm(spec.model, spec.config)) << world << " " << stage << " " << threshold;
        }
      }
    }
  }
}

TEST(ExpectedCalls, SumToTheLedgersFormulaForAllStagesOfTwoLayersAndTheRest) {
  for (int64_t first : {0, 1, 2, 3}) {
    for (int64_t second : {0, 1, 2, 3}) {
      for (int64_t others : {0, 1, 2, 3}) {
        contract::Case spec = ExampleOfLayerStages(first, second, others, 3);
        spec.config.persistence_threshold_elems = 5;
        spec.config.reduce_bucket_elems = 40;
        EXPECT_EQ(Sums(spec), ExpectedComm(spec.model, spec.config)) << first << second << others;
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
