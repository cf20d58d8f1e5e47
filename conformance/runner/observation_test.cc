// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/observation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using contract::Trace;
using reports::CheckOutcome;

contract::EngineDescription WithBooks(bool books) {
  contract::EngineDescription description;
  if (books) description.features = {"ledger", "memory"};
  return description;
}

void Write(const std::filesystem::path& out_dir, const std::vector<Trace>& traces) {
  for (const Trace& trace : traces) {
    contract::TraceWriter writer(out_dir, trace.engine, trace.rank, trace.config);
    for (const contract::StepRecord& step : trace.steps) writer.Step(step);
    writer.End(static_cast<int64_t>(trace.steps.size()));
  }
}

Observation ObserveIn(const std::filesystem::path& out_dir, bool books = true,
                      CaseOutcome::Kind kind = CaseOutcome::Kind::kOk) {
  return Observe(ExampleCase(2, 1), WithBooks(books), out_dir, {kind, "", 0, {}});
}

CheckOutcome OutcomeOf(const Observation& seen, const std::string& name) {
  const auto found = std::find_if(seen.checks.begin(), seen.checks.end(),
                                  [&](const reports::CheckRecord& check) { return check.name == name; });
  return found == seen.checks.end() ? CheckOutcome::kNotApplicable : found->outcome;
}

TEST(Observe, PassesAllChecksOfGoodTracesAndKeepsTheRun) {
  const contract::testing::TemporaryFolder folder;
  Write(folder.path(), ExampleTraces(2, 1));
  const Observation seen = ObserveIn(folder.path());
  for (const char* name : {"trace", "replicas", "collectives", "ledger", "memory"}) {
    EXPECT_EQ(OutcomeOf(seen, name), CheckOutcome::kPass) << name;
  }
  ASSERT_TRUE(seen.run);
  EXPECT_EQ(seen.run->steps.size(), static_cast<size_t>(kExampleSteps));
}

TEST(Observe, FailsTheTraceCheckWhereARankWroteNothingOrNoJson) {
  const contract::testing::TemporaryFolder folder;
  auto traces = ExampleTraces(2, 1);
  traces.pop_back();
  Write(folder.path(), traces);
  EXPECT_EQ(OutcomeOf(ObserveIn(folder.path()), "trace"), CheckOutcome::kFail);
  std::filesystem::create_directories(folder.path() / "rank1");
  std::ofstream(folder.path() / "rank1" / "trace.jsonl") << "garbage\n";
  const Observation seen = ObserveIn(folder.path());
  EXPECT_EQ(OutcomeOf(seen, "trace"), CheckOutcome::kFail);
  EXPECT_FALSE(seen.run);
}

TEST(Observe, DemandsCountsOfAnEngineThatKeepsALedger) {
  const contract::testing::TemporaryFolder folder;
  auto traces = ExampleTraces(2, 1);
  for (Trace& trace : traces) {
    for (contract::StepRecord& step : trace.steps) step.comm.reset();
  }
  Write(folder.path(), traces);
  EXPECT_EQ(OutcomeOf(ObserveIn(folder.path(), true), "ledger"), CheckOutcome::kFail);
  EXPECT_EQ(OutcomeOf(ObserveIn(folder.path(), false), "ledger"), CheckOutcome::kNotApplicable);
}

TEST(Observe, DemandsPeaksOfAnEngineThatKeepsBooksOfMemory) {
  const contract::testing::TemporaryFolder folder;
  auto traces = ExampleTraces(2, 1);
  for (Trace& trace : traces) {
    for (contract::StepRecord& step : trace.steps) step.memory_peak_bytes.clear();
  }
  Write(folder.path(), traces);
  EXPECT_EQ(OutcomeOf(ObserveIn(folder.path(), true), "memory"), CheckOutcome::kFail);
  EXPECT_EQ(OutcomeOf(ObserveIn(folder.path(), false), "memory"), CheckOutcome::kNotApplicable);
}

TEST(Observe, FailsTheMemoryCheckAloneWhereOnlyMemoryDiffers) {
  const contract::testing::TemporaryFolder folder;
  auto traces = ExampleTraces(2, 1);
  traces[1].steps[2].memory_peak_bytes["optimizer_state"] *= 2;
  Write(folder.path(), traces);
  const Observation seen = ObserveIn(folder.path(), false);
  for (const char* name : {"trace", "replicas", "collectives", "ledger"}) {
    EXPECT_EQ(OutcomeOf(seen, name), CheckOutcome::kPass) << name;
  }
  EXPECT_EQ(OutcomeOf(seen, "memory"), CheckOutcome::kFail);
  EXPECT_TRUE(seen.run);
}

TEST(Observe, SaysHowFarAnEngineCameThatWasStopped) {
  const contract::testing::TemporaryFolder folder;
  EXPECT_EQ(ObserveIn(folder.path(), true, CaseOutcome::Kind::kTimedOut).outcome.message, "; no step was traced");
  Write(folder.path(), ExampleTraces(2, 1));
  EXPECT_EQ(ObserveIn(folder.path(), true, CaseOutcome::Kind::kTimedOut).outcome.message, "; 4 of 4 steps were traced");
  EXPECT_TRUE(ObserveIn(folder.path(), true, CaseOutcome::Kind::kTimedOut).checks.empty());
  EXPECT_EQ(ObserveIn(folder.path(), true, CaseOutcome::Kind::kUnsupported).outcome.message, "");
}

}  // namespace
}  // namespace plumbline::conformance
