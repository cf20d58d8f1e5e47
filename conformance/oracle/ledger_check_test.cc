// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/ledger_check.h"

#include <gtest/gtest.h>

#include "conformance/oracle/testing/example_gpt2.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::CommCount;
using reports::CheckOutcome;

// Parameters of the example in reverse: down 21, up 21, o 9, v 9, k 9, q 9, pos 15, embed 33 elements; padded each to
// 32 or 64. With at most 20 elements a bucket: {down} {up} {o, v} {k, q} {pos} {embed}.
TEST(ExpectedComm, MatchesASumByHandForTwoRanks) {
  const auto model = ExampleCase(2).model;
  contract::RunConfig config = ExampleCase(2).config;
  config.accumulation_steps = 3;
  const int64_t padded = 64 * 6;  // each bucket of 32 or 64 elements rounds to 64 = 32 * 2
  using Counts = std::map<std::string, CommCount>;
  EXPECT_EQ(ExpectedComm(model, config), (Counts{{"all_reduce", {6 + 2, 4 * padded + 16}}}));
  config.zero_stage = 1;
  EXPECT_EQ(ExpectedComm(model, config),
            (Counts{{"all_reduce", {2, 16}}, {"reduce_scatter", {6, 4 * padded}}, {"all_gather", {6, 4 * padded}}}));
  config.zero_stage = 2;
  config.storage = contract::DType::kBF16;
  EXPECT_EQ(
      ExpectedComm(model, config),
      (Counts{{"all_reduce", {2, 16}}, {"reduce_scatter", {18, 3 * 4 * padded}}, {"all_gather", {6, 2 * padded}}}));
}

TEST(ExpectedComm, PadsTheBucketForThreeRanks) {
  contract::RunConfig config = ExampleCase(3).config;
  config.reduce_bucket_elems = 1000;  // one bucket: 7 parameters at 32 elements, embed at 64, 288 = 3 * 96
  config.zero_stage = 1;
  EXPECT_EQ(ExpectedComm(ExampleCase(3).model, config).at("reduce_scatter"), (CommCount{1, 4 * 288}));
  config.data_degree = 4;  // 288 rounds to 384 = 3 * 128
  EXPECT_EQ(ExpectedComm(ExampleCase(3).model, config).at("reduce_scatter"), (CommCount{1, 4 * 384}));
}

TEST(ExpectedComm, PutsAParameterAsLargeAsTheBucketOrLargerIntoOneOfItsOwn) {
  contract::RunConfig config = ExampleCase(2).config;
  for (int64_t bucket : {32, 33, 34}) {  // embed has 33
    config.reduce_bucket_elems = bucket;
    config.zero_stage = 1;
    // {down} {up, o} {v, k, q} {pos} {embed}; 21 + 9 fits in all three, + 9 in none.
    EXPECT_EQ(ExpectedComm(ExampleCase(2).model, config).at("reduce_scatter").calls, 5) << bucket;
  }
}

TEST(ExpectedComm, FillsABucketToItsLastElement) {
  contract::RunConfig config = ExampleCase(2, 1).config;
  const auto calls = [&] { return ExpectedComm(ExampleCase(2).model, config).at("reduce_scatter").calls; };
  config.reduce_bucket_elems = 18;  // o and v have nine elements each, and so have k and q
  EXPECT_EQ(calls(), 6);
  config.reduce_bucket_elems = 17;
  EXPECT_EQ(calls(), 8);
}

TEST(ExpectedComm, IsEmptyForOneRank) {
  for (int64_t stage : {0, 1, 2}) EXPECT_TRUE(ExpectedComm(ExampleCase(1).model, ExampleCase(1, stage).config).empty());
}

TEST(CheckLedger, PassesTheFormulaAndFailsOneCallOrByteMoreOnAnyRank) {
  const contract::Case spec = ExampleCase(2, 1);
  auto traces = ExampleTraces(2, 1);
  EXPECT_EQ(CheckLedger(spec, traces, true).outcome, CheckOutcome::kPass);
  EXPECT_GT(CheckLedger(spec, traces, true).compared, 0);
  (*traces[1].steps[3].comm)["all_gather"].calls += 1;
  EXPECT_EQ(CheckLedger(spec, traces, true).outcome, CheckOutcome::kFail);
  EXPECT_NE(CheckLedger(spec, traces, true).detail.find("step 3, rank 1"), std::string::npos);
  traces = ExampleTraces(2, 1);
  (*traces[0].steps[0].comm)["reduce_scatter"].bytes -= 4;
  EXPECT_EQ(CheckLedger(spec, traces, true).outcome, CheckOutcome::kFail);
}

TEST(CheckLedger, FailsOnAnotherOrderOfTheSameCallsAndOnASequenceOfOneRank) {
  for (int64_t world : {1, 2}) {
    auto traces = ExampleTraces(world, 1);
    EXPECT_EQ(CheckLedger(ExampleCase(world, 1), traces, true).outcome, CheckOutcome::kPass);
    for (auto& trace : traces) trace.steps[2].comm_sequence ^= 1;  // all ranks alike
    const reports::CheckRecord check = CheckLedger(ExampleCase(world, 1), traces, true);
    EXPECT_EQ(check.outcome, CheckOutcome::kFail);
    EXPECT_NE(check.detail.find("step 2, rank 0"), std::string::npos) << check.detail;
  }
}

TEST(CheckLedger, FailsOnAKindThatTheFormulaDoesNotHave) {
  auto traces = ExampleTraces(2, 1);
  (*traces[0].steps[0].comm)["broadcast"] = {1, 8};
  EXPECT_EQ(CheckLedger(ExampleCase(2, 1), traces, true).outcome, CheckOutcome::kFail);
  (*traces[0].steps[0].comm)["broadcast"] = {0, 0};
  EXPECT_EQ(CheckLedger(ExampleCase(2, 1), traces, true).outcome, CheckOutcome::kPass);
}

TEST(CheckLedger, WithoutCountsFailsOnlyAnEngineThatPromisedThem) {
  auto traces = ExampleTraces(2, 1);
  for (auto& trace : traces) {
    for (auto& step : trace.steps) step.comm.reset();
  }
  EXPECT_EQ(CheckLedger(ExampleCase(2, 1), traces, true).outcome, CheckOutcome::kFail);
  EXPECT_EQ(CheckLedger(ExampleCase(2, 1), traces, false).outcome, CheckOutcome::kNotApplicable);
}

// Runs of eight steps; `wait_us` of rank 1 in the last, 0 in the others.
std::vector<contract::Trace> TracesThatWait(int64_t world, int64_t wait_us) {
  auto traces = ExampleTraces(world, 1);
  for (auto& trace : traces) {
    const auto four = trace.steps;
    trace.steps.insert(trace.steps.end(), four.begin(), four.end());
    for (auto& step : trace.steps) step.comm_wait_us = trace.rank == 0 ? 5 : 0;
  }
  traces.back().steps.back().comm_wait_us = wait_us;
  return traces;
}

TEST(CheckLedger, FailsOnARankThatNeverWaitsForAnother) {
  EXPECT_EQ(CheckLedger(ExampleCase(2, 1), TracesThatWait(2, 1), true).outcome, CheckOutcome::kPass);
  const reports::CheckRecord check = CheckLedger(ExampleCase(2, 1), TracesThatWait(2, 0), true);
  EXPECT_EQ(check.outcome, CheckOutcome::kFail);
  EXPECT_NE(check.detail.find("rank 1: comm_wait_us is 0 in every step"), std::string::npos) << check.detail;
  EXPECT_EQ(CheckLedger(ExampleCase(1, 1), TracesThatWait(1, 0), true).outcome, CheckOutcome::kPass);  // no other
  auto traces = TracesThatWait(2, 0);
  for (auto& step : traces.back().steps) step.comm_wait_us.reset();  // it need not be told
  EXPECT_EQ(CheckLedger(ExampleCase(2, 1), traces, true).outcome, CheckOutcome::kPass);
}

// Two ranks pad the groups of the tied model to 64 (norm), 448 (layer), 64 (pos), 64 (embed).
TEST(ExpectedComm, OfGpt2HasAThirdSumForTheNormWhereGradientsAreSharded) {
  using Counts = std::map<std::string, CommCount>;
  contract::Case spec = ExampleGpt2(2, 0);
  spec.config.accumulation_steps = 3;
  const auto counts = [&](int64_t stage) {
    spec.config.zero_stage = stage;
    return ExpectedComm(spec.model, spec.config);
  };
  EXPECT_EQ(counts(0), (Counts{{"all_reduce", {2 + 1, 16 + 4 * 576}}}));
  EXPECT_EQ(counts(1),
            (Counts{{"all_reduce", {3, 16 + 168}}, {"reduce_scatter", {1, 4 * 576}}, {"all_gather", {1, 4 * 576}}}));
  EXPECT_EQ(
      counts(2),
      (Counts{{"all_reduce", {3, 16 + 168}}, {"reduce_scatter", {3, 3 * 4 * 576}}, {"all_gather", {1, 4 * 576}}}));
  // In each micro-batch norm and pos are gathered once, layer and embed twice.
  EXPECT_EQ(counts(3), (Counts{{"all_reduce", {3, 16 + 168}},
                               {"reduce_scatter", {4 * 3, 3 * 4 * 640}},
                               {"all_gather", {3 * 6, 3 * 4 * (64 + 2 * 448 + 64 + 2 * 64)}}}));
  spec.config.data_degree = 1;
  for (int64_t stage : {0, 1, 2, 3}) EXPECT_TRUE(counts(stage).empty());
}

TEST(ExpectedComm, OfGpt2ReducesTheUnusedParameterAndGathersItOnlyAfterAnUpdate) {
  contract::Case spec = ExampleGpt2(2, 3);
  spec.model.gpt2().unused = true;
  spec.config.max_live_elems = 1000;
  EXPECT_EQ(ExpectedComm(spec.model, spec.config).at("reduce_scatter"), (CommCount{5, 4 * (640 + 64)}));
  EXPECT_EQ(ExpectedComm(spec.model, spec.config).at("all_gather"), (CommCount{4, 4 * 640}));
  spec.config.persistence_threshold_elems = 16;  // unused, norms and biases; attn.out.weight has just 16
  const auto counts = ExpectedComm(spec.model, spec.config);
  EXPECT_EQ(counts.at("reduce_scatter").calls, 4);  // layer, pos, embed, persistent
  EXPECT_EQ(counts.at("all_gather").calls, 4);
  spec.config.zero_stage = 1;
  EXPECT_EQ(ExpectedComm(spec.model, spec.config).at("all_gather"), (CommCount{1, 4 * 640}));  // 576 + 32, padded
}

TEST(ExpectedComm, OfGpt2NeverSendsAFrozenParameter) {
  contract::Case spec = ExampleGpt2(2, 1);
  spec.model.gpt2().frozen = {"embed.weight", "layers.0.attn.qkv.weight"};  // 576 - 128
  EXPECT_EQ(ExpectedComm(spec.model, spec.config).at("all_gather"), (CommCount{1, 4 * 448}));
  spec.config.zero_stage = 3;  // norm once, layer (352, padded to 384) twice, pos once
  EXPECT_EQ(ExpectedComm(spec.model, spec.config).at("reduce_scatter"), (CommCount{3, 4 * (64 + 384 + 64)}));
  EXPECT_EQ(ExpectedComm(spec.model, spec.config).at("all_gather"), (CommCount{4, 4 * (64 + 2 * 384 + 64)}));
}

// Without padding, what each rank sends and receives is the textbook's multiple of psi (Rajbhandari et al. 2020,
// section 7): a reduce_scatter and an all_gather count psi each, an all_reduce's buffer is psi but travels twice.
TEST(ExpectedComm, WithoutPaddingIsTwoPsiAndUnderStageThreeThreePsi) {
  contract::Case spec = ExampleCase(4);
  spec.model.exact().width = spec.model.exact().hidden = 32;
  spec.model.exact().positions = spec.model.exact().vocab = 32;
  spec.model.exact().layers = 97;
  spec.config.reduce_bucket_elems = 1 << 30;
  spec.config.persistence_threshold_elems = 2000;
  spec.config.max_live_elems = 0;
  const int64_t layers_bytes = 4 * 97 * 6 * 1024;
  const int64_t embeddings_bytes = 4 * 2 * 1024;
  const auto travelled = [&](int64_t stage) {
    spec.config.zero_stage = stage;
    int64_t bytes = 0;
    for (const auto& [kind, count] : ExpectedComm(spec.model, spec.config)) {
      bytes += count.bytes * (kind == "all_reduce" ? 2 : 1);
    }
    return bytes - 2 * 2 * 8;
  };
  for (int64_t stage : {0, 1, 2}) EXPECT_EQ(travelled(stage), 2 * (layers_bytes + embeddings_bytes)) << stage;
  EXPECT_EQ(travelled(3), 2 * (layers_bytes + embeddings_bytes)) << "all persistent";
  spec.config.persistence_threshold_elems = 0;
  // Layers are gathered for forward and for backward, embed for its two units, pos once.
  EXPECT_EQ(travelled(3), 3 * layers_bytes + (1 + 2 + 1 + 1) * embeddings_bytes / 2);
}

}  // namespace
}  // namespace plumbline::conformance
