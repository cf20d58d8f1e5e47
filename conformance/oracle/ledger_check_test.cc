// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/ledger_check.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace plumbline::conformance
