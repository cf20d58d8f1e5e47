// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/observation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "conformance/contract/testing/temporary_folder.h"
#include "conformance/contract/trace.h"
#include "conformance/oracle/testing/example_run.h"

namespace plumbline::conformance {
namespace {

using reports::CheckOutcome;

contract::EngineDescription Description(bool has_ledger) {
  contract::EngineDescription description;
  if (has_ledger) description.features = {"ledger"};
  return description;
}

void WriteTraces(const std::filesystem::path& out_dir, bool with_comm) {
  for (contract::Trace& trace : ExampleTraces(2, 1)) {
    contract::TraceWriter writer(out_dir, trace.engine, trace.rank, trace.config);
    for (contract::StepRecord& record : trace.steps) {
      if (!with_comm) record.comm.reset();
      writer.Step(record);
    }
    writer.End(kExampleSteps);
  }
}

CheckOutcome OutcomeOf(const Observation& seen, const std::string& name) {
  for (const reports::CheckRecord& check : seen.checks) {
    if (check.name == name) return check.outcome;
  }
  ADD_FAILURE() << "no check " << name;
  return CheckOutcome::kVacuous;
}

Observation See(const std::filesystem::path& out_dir, bool has_ledger,
                CaseOutcome::Kind kind = CaseOutcome::Kind::kOk) {
  return Observe(ExampleCase(2, 1), Description(has_ledger), out_dir, {kind, "", 0, {}});
}

TEST(Observe, ReadsAllRanksAndChecksThem) {
  const contract::testing::TemporaryFolder folder;
  WriteTraces(folder.path(), true);
  const Observation seen = See(folder.path(), true);
  ASSERT_TRUE(seen.run);
  for (const char* name : {"trace", "replicas", "collectives", "ledger"}) {
    EXPECT_EQ(OutcomeOf(seen, name), CheckOutcome::kPass) << name;
  }
}

TEST(Observe, HoldsAnEngineToTheLedgerThatItPromised) {
  const contract::testing::TemporaryFolder folder;
  WriteTraces(folder.path(), false);
  EXPECT_EQ(OutcomeOf(See(folder.path(), true), "ledger"), CheckOutcome::kFail);
  EXPECT_EQ(OutcomeOf(See(folder.path(), false), "ledger"), CheckOutcome::kNotApplicable);
}

TEST(Observe, FailsTheCheckOfTheTraceWhereOneIsMissingOrNoTrace) {
  const contract::testing::TemporaryFolder folder;
  WriteTraces(folder.path(), true);
  std::ofstream(folder.path() / "rank1" / "trace.jsonl") << "hello\n";
  EXPECT_EQ(OutcomeOf(See(folder.path(), true), "trace"), CheckOutcome::kFail);
  EXPECT_FALSE(See(folder.path(), true).run);
  std::filesystem::remove(folder.path() / "rank1" / "trace.jsonl");
  EXPECT_EQ(OutcomeOf(See(folder.path(), true), "trace"), CheckOutcome::kFail);
}

TEST(Observe, LooksAtNothingWhereTheEngineDidNotEndWell) {
  const contract::testing::TemporaryFolder folder;
  WriteTraces(folder.path(), true);
  const Observation seen = See(folder.path(), true, CaseOutcome::Kind::kCrashed);
  EXPECT_TRUE(seen.checks.empty());
  EXPECT_FALSE(seen.run);
}

}  // namespace
}  // namespace plumbline::conformance
